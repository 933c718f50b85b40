"""Every request is counted once, with no name that a client made."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapters.errors import Busy
from adapters.outcomes import PassedOver
from adapters.protocol import Opened, Upstream
from adapters.receipts import Note
from middleware.config import parse
from middleware.server.visits import Visit
from middleware.telemetry.exposition import exposed
from middleware.telemetry.families import FAMILIES, REQUESTS
from middleware.telemetry.tally import Histogram, Labels, Snapshot, Tally, together
from middleware.telemetry.vitals import take_vitals
from tests.support.paths import ROOT
from tests.telemetry.visits import CONFIG, NOW, call, visit, vocabulary

CALLED = ("chat", "openai", "demo-1", "demo-1-0613")


def counted(*visits: Visit) -> Snapshot:
    tally = Tally(vocabulary())
    for one in visits:
        tally.ended(one, NOW)
    return asyncio.run(tally.snapshot())


def series(snapshot: Snapshot, name: str) -> dict[Labels, list[float]]:
    return {tuple(labels): row for labels, row in snapshot[name]}


def fallen_back() -> Visit:
    return visit((call("opus", "claude", "overloaded"), PassedOver("m", "resting"), call()))


def test_a_request_counts_once_and_each_of_its_calls() -> None:
    found = counted(fallen_back(), fallen_back(), visit((call(),), streamed=True))
    assert series(found, "usetool_requests_total") == {
        ("alpha", "m", "m", "up", "200", "false"): [2],
        ("alpha", "m", "m", "up", "200", "true"): [1],
    }
    assert series(found, "usetool_upstream_calls_total") == {
        ("claude", "opus", "overloaded"): [2],
        ("up", "m", "ok"): [3],
    }
    assert series(found, "usetool_passed_total") == {("m", "resting"): [2]}
    ((_, row),) = found["gen_ai_client_operation_duration_seconds"][1:]
    assert (sum(row[:-1]), row[-1]) == (3, 6.0)


@pytest.mark.parametrize(
    "one",
    [
        visit((call("opus", "claude", "overloaded"), call())),
        visit((call(),), error=Busy("full of it"), finish=None),
        visit((call(),), gone=True, finish=None),
        visit((call(),), receipt=(Note("name_dropped", "messages[0].name", "no"),)),
    ],
    ids=["several calls", "failed", "left", "a receipt"],
)
def test_what_may_be_as_long_as_its_request_is_not_held(one: Visit) -> None:
    tally, held = Tally(vocabulary()), sys.getrefcount(one)
    tally.ended(one, NOW)
    assert sys.getrefcount(one) == held


def test_tokens_and_money_are_the_clients() -> None:
    found = counted(visit((call(),)), visit((call(),)))
    assert series(found, "usetool_tokens_total") == {
        ("alpha", "m", "input"): [200],
        ("alpha", "m", "cached"): [80],
        ("alpha", "m", "cache_write"): [20],
        ("alpha", "m", "output"): [100],
        ("alpha", "m", "reasoning"): [10],
    }
    assert series(found, "usetool_cost_usd_total") == {("alpha", "m"): [0.5]}
    used = series(found, "gen_ai_client_token_usage")
    assert {labels: row[-1] for labels, row in used.items()} == {
        (*CALLED, "input"): 200,
        (*CALLED, "output"): 100,
    }


def test_who_was_refused_or_left_has_no_first_word() -> None:
    refused = visit(status=429, limit="requests", first_event=None, finish=None, cost=None)
    found = counted(refused, visit((call(),), gone=True))
    assert series(found, "usetool_limited_total") == {("alpha", "requests"): [1]}
    assert series(found, "usetool_requests_total") == {
        ("alpha", "m", "", "", "429", "false"): [1],
        ("alpha", "m", "m", "up", "499", "false"): [1],
    }
    ((_, seconds),) = found["usetool_request_seconds"]
    ((_, first),) = found["usetool_first_event_seconds"]
    assert (sum(seconds[:-1]), seconds[-1]) == (2, 4.0)
    assert (sum(first[:-1]), round(first[-1], 6)) == (1, 0.3)


def test_a_value_on_a_bound_is_within_it() -> None:
    of = Histogram(replace(REQUESTS, labels=(), bounds=(1.0, 2.0)))
    of.values(()).extend((0.5, 3.0, 1.0, 1.5))
    of.count()
    assert of.rows == {(): [2, 1, 1, 6.0]}
    of.values(()).append(2.0)
    of.count()
    assert of.rows == {(): [2, 2, 1, 8.0]}


def test_however_many_were_counted_none_is_lost_or_counted_twice() -> None:
    tally = Tally(vocabulary())

    async def after(more: int) -> tuple[float, list[float]]:
        for _ in range(more):
            tally.ended(visit((call(),)), NOW)
        found = await tally.snapshot()
        ((_, row),) = found["usetool_request_seconds"]
        return sum(row[:-1]), series(found, "usetool_tokens_total")["alpha", "m", "input"]

    assert asyncio.run(after(2500)) == (2500, [250_000])
    assert asyncio.run(after(1)) == (2501, [250_100])


def test_clients_make_no_series() -> None:
    asked = [visit(model=f"unknown-{n}", status=404) for n in range(50)]
    for n in range(50):
        behind = call(f"open/{n}")
        behind.model, behind.opened = f"vendor/{n}", Opened((), Upstream("up", f"vendor/{n}"))
        asked.append(visit((behind,), model=f"open/{n}"))
    found = counted(*asked)
    assert {labels[1] for labels, _ in found["usetool_requests_total"]} == {"other", "open/*"}
    for name, rows in found.items():
        assert len(rows) <= 10, name
    labels, _ = found["gen_ai_client_operation_duration_seconds"][0]
    assert labels == ("chat", "openai", "vendor/*", "vendor/*")


def test_a_changed_config_changes_what_is_told() -> None:
    vitals = take_vitals(vocabulary(), parse(CONFIG, environment={}).telemetry, print)
    vitals.tally.ended(visit(model="m"), NOW)
    vitals.follow(parse(CONFIG.replace("[models.m]", "[models.n]"), environment={}))
    vitals.tally.ended(visit(model="m"), NOW)
    found = series(asyncio.run(vitals.tally.snapshot()), "usetool_request_seconds")
    assert {*found} == {("m",), ("other",)}


def test_a_metric_has_only_so_many_series() -> None:
    asked = []
    for n in range(3000):
        asked.append(visit((call(),)))
        asked[-1].journey.calls()[0].opened = Opened((), Upstream("up", f"said-{n}"))
    rows = series(counted(*asked), "gen_ai_client_operation_duration_seconds")
    assert len(rows) == 2001
    assert sum(map(sum, (row[:-1] for row in rows.values()))) == 3000


def test_a_replay_is_counted_as_one() -> None:
    found = counted(visit(replay="tapes#4", cost=0.0))
    assert series(found, "usetool_requests_total") == {
        ("alpha", "m", "m", "replay", "200", "false"): [1]
    }


def test_counts_of_several_workers_add_up_also_as_json() -> None:
    one, two = counted(fallen_back(), visit((call(),))), counted(fallen_back())
    one["usetool_state_up"], two["usetool_state_up"] = [((), [1.0])], [((), [0.0])]
    both = together([orjson.loads(orjson.dumps(one)), two])
    whole = counted(fallen_back(), visit((call(),)), fallen_back())
    assert series(both, "usetool_state_up") == {(): [0.0]}
    assert {name: series(both, name) for name in whole} == {
        name: series(whole, name) for name in whole
    }
    assert (
        one["usetool_requests_total"]
        == counted(fallen_back(), visit((call(),)))["usetool_requests_total"]
    )  # they are not changed


def test_each_metric_is_explained() -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    for family in FAMILIES:
        labels = ", ".join(family.labels) or "–"
        assert f"| `{family.name}` | {family.type} | {labels} | {family.about} |" in page


def test_prometheus_reads_it() -> None:
    text = exposed(counted(fallen_back(), visit((call(),), gone=True))).decode()
    read = {family.name: family for family in text_string_to_metric_families(text)}
    for family in FAMILIES:
        assert read[family.name.removesuffix("_total")].type == family.type
    samples = {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in read.values()
        for sample in family.samples
    }
    labels = ("m", "alpha", "m", "499", "false", "up")  # in the order of their names
    assert samples["usetool_requests_total", *labels] == 1
    assert samples["usetool_request_seconds_bucket", "1.0", "m"] == 0
    assert samples["usetool_request_seconds_bucket", "2.5", "m"] == 2
    assert samples["usetool_request_seconds_bucket", "+Inf", "m"] == 2
    assert samples["usetool_request_seconds_count", "m"] == 2


def test_what_a_gauge_asks_may_be_away() -> None:
    async def away() -> dict[Labels, float]:
        await asyncio.sleep(3600)
        return {}

    async def here() -> dict[Labels, float]:
        return {("up",): 2.0}

    tally = Tally(vocabulary())
    tally.gauges |= {"usetool_budget_spent_usd": away, "usetool_keys_resting": here}
    found = asyncio.run(tally.snapshot())
    assert series(found, "usetool_keys_resting") == {("up",): [2.0]}
    assert found["usetool_budget_spent_usd"] == []
