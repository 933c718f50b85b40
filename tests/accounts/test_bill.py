"""What a request used, and what that costs."""

from __future__ import annotations

import pytest

from adapters.errors import Busy
from adapters.protocol import UpstreamCall, Usage
from middleware.accounts.bill import Bill
from middleware.accounts.lengths import AnswerLengths
from middleware.accounts.prices import Prices
from middleware.server.visits import Visit
from tests.accounts.counting import called, parsed, visit

CONFIG = """
[upstreams.up]
kind = "compatible"
base_url = "http://up.test/v1"
[models.demo]
upstream = "up"
price = { input = 1.0, output = 3.0 }
[models.dear]
upstream = "up"
price = { input = 10.0, output = 30.0 }
[models.unheard]
upstream = "up"
name = "nobody-knows-this"
"""
WATCHED = CONFIG + '[clients.alpha]\nkey = "A"\n'
LETTERS = 16


def billed(found: Visit, config: str = CONFIG) -> Visit:
    bill = Bill(found, Prices(parsed(config)))
    bill.close()
    bill.close()
    return found


def failed(place: str = "demo") -> UpstreamCall:
    return UpstreamCall(place, "up", "model", 1.0, error=Busy("no"), outcome="failed")


def test_a_call_costs_what_its_place_costs() -> None:
    found = billed(visit(called("demo", Usage(1000, 100))))
    assert (found.cost, found.spent) == (0.0013, Usage(1000, 100))


def test_after_a_fallback_who_answered_is_paid() -> None:
    assert billed(visit(failed("demo"), called("dear", Usage(1000, 100)))).cost == 0.013


def test_parts_are_summed_each_at_its_price() -> None:
    first, then = Usage(1000, 100, cached=10), Usage(2000, 200, reasoning=5)
    found = billed(visit(called("demo", first), called("dear", then)))
    assert found.cost == 0.0273
    assert found.spent == Usage(3000, 300, cached=10, cache_write=0, reasoning=5)


def test_a_failure_costs_nothing() -> None:
    found = visit(failed(), called("demo", open_end=True))
    found.error = Busy("broke off")
    assert (billed(found).cost, found.spent, found.receipt) == (None, None, ())


def test_who_leaves_pays_for_what_came() -> None:
    found = visit(called("demo", open_end=True))
    found.journey.calls()[0].letters, found.gone = LETTERS, True
    assert (billed(found).cost, found.spent) == (0.000012, Usage(0, 4))
    assert [note.code for note in found.receipt] == ["usage_estimated"]


@pytest.mark.parametrize(
    ("place", "cost", "codes"), [("demo", 0.000012, ["usage_estimated"]), ("unheard", None, [])]
)
def test_what_an_upstream_does_not_say_is_estimated(
    place: str, cost: float | None, codes: list[str]
) -> None:
    told = called(place)
    told.letters = LETTERS
    found = billed(visit(told))
    assert (found.cost, found.spent) == (cost, Usage(0, 4))
    assert [note.code for note in found.receipt] == codes


def test_a_reasoner_that_was_left_when_it_had_thought_is_paid() -> None:
    reasoner = called("dear", open_end=True)
    reasoner.outcome, reasoner.letters = "ok", 4000
    found = billed(visit(reasoner, called("demo", Usage(1000, 100))))
    assert (found.cost, found.spent) == (0.0313, Usage(1000, 1100, 0, 0, 0))
    assert [note.code for note in found.receipt] == ["usage_estimated"]


def test_vectors_whose_upstream_counts_nothing_are_estimated() -> None:
    found = visit(UpstreamCall("demo", "up", "model", 1.0, outcome="ok"))
    found.operation = "embeddings"
    bill = Bill(found, Prices(parsed(CONFIG)))
    bill.size = 4000
    bill.close()
    assert (found.cost, found.spent) == (0.001, Usage(1000, 0))
    assert [note.code for note in found.receipt] == ["usage_estimated"]


def test_a_recording_costs_nothing() -> None:
    found = visit(called("demo", Usage(1000, 100)))
    found.replay = "test/one#1"
    assert (billed(found).cost, found.counted) == (None, False)


def test_what_was_asked_in_spite_of_a_recording_costs() -> None:
    found = visit(called("demo", Usage(1000, 100)))
    found.replay = "live"
    assert (billed(found).cost, found.counted) == (0.0013, True)


def test_vectors_cost_their_prompt() -> None:
    found = visit(UpstreamCall("demo", "up", "model", 1.0, outcome="ok"))
    found.operation, found.usage = "embeddings", Usage(1000, 0)
    assert billed(found).cost == 0.001


@pytest.mark.parametrize(
    ("config", "place", "codes"),
    [
        (WATCHED, "unheard", ["price_unknown"]),
        (WATCHED, "demo", []),
        (CONFIG, "unheard", []),
    ],
)
def test_where_accounts_are_kept_a_missing_price_is_named(
    config: str, place: str, codes: list[str]
) -> None:
    bill = Bill(visit(called(place)), Prices(parsed(config)))
    assert [note.code for note in bill.missing()] == codes


def test_answers_are_expected_to_be_as_long_as_the_last_ones() -> None:
    lengths = AnswerLengths()
    assert lengths.of("alpha", "demo") == 256
    for tokens in (100, 200):
        lengths.learn("alpha", "demo", tokens)
    assert lengths.of("alpha", "demo") == 130
    assert lengths.of("beta", "demo") == 256
    for number in range(5000):
        lengths.learn("alpha", str(number), 1)
    assert lengths.of("alpha", "demo") == 256
