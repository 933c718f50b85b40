"""A gateway that is watched: what it says of itself, and to whom."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import orjson
from prometheus_client.parser import text_string_to_metric_families
from starlette.types import Message

from middleware import config
from middleware.server.last import Scrubber
from middleware.server.transport.responses import PIECES
from middleware.telemetry.bodies import Bodies
from tests.support.day_one import Running, running
from tests.telemetry.collector import CLIENT, SERVER, collecting

DEMO = '[upstreams.demo]\nkind = "scripted"\n[models.demo]\nupstream = "demo"\n'
HELLO = {"model": "demo", "messages": [{"role": "user", "content": "canary"}]}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def run(script: Callable[[Running], Awaitable[None]], text: str = "") -> None:
    async def play() -> None:
        async with running(text + DEMO) as gateway:
            await script(gateway)

    asyncio.run(play())


async def scraped(gateway: Running, key: str = "") -> dict[tuple[str, ...], float]:
    sent = {"authorization": f"Bearer {key}"} if key else {}
    async with gateway.session.get(f"{gateway.url}/metrics", headers=sent) as answer:
        assert answer.status == 200
        assert answer.content_type == "text/plain"
        text = await answer.text()
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_scrape_tells_what_was_asked_and_how_it_stands() -> None:
    async def script(gateway: Running) -> None:
        assert (await gateway.chat(HELLO))[0] == 200
        assert (await gateway.chat({**HELLO, "model": "none"}))[0] == 404
        assert (await gateway.get("/nowhere"))[0] == 404  # no request to a model
        found = await scraped(gateway)
        asked = {key[1:]: count for key, count in found.items() if "requests_total" in key[0]}
        assert asked == {
            ("demo", "default", "demo", "200", "false", "demo"): 1,
            ("", "default", "other", "404", "false", ""): 1,
        }
        assert found["usetool_upstream_calls_total", "demo", "ok", "demo"] == 1
        assert found["usetool_open_requests",] == 0
        assert found["usetool_queued_requests", "demo"] == 0
        assert found["usetool_keys_resting", "demo"] == 0
        assert found["usetool_state_up",] == 1
        assert found["usetool_ledger_pending",] == 0

    run(script)


def test_metrics_ask_for_a_key_where_there_are_some() -> None:
    async def script(gateway: Running) -> None:
        assert (await gateway.get("/metrics"))[0] == 401
        assert (await gateway.get("/readyz"))[0] == 200
        await scraped(gateway, "secret-key")

    run(script, '[server]\nkeys = ["secret-key"]\n')


def test_a_gateway_that_stops_is_not_ready() -> None:
    async def script(gateway: Running) -> None:
        assert await gateway.get("/readyz") == (
            200,
            {
                "status": "ready",
                "workers": 1,
                "state": {"kind": "memory", "ok": True},
                "ledger": {"ok": True, "pending": 0},
            },
        )
        gateway.app.vitals.draining = True
        assert await gateway.get("/readyz") == (503, {"status": "draining"})
        assert await gateway.get("/healthz") == (200, {"status": "ok"})

    run(script)


def test_the_log_says_who_asked_and_where_it_went() -> None:
    async def script(gateway: Running) -> None:
        await gateway.chat(HELLO)
        await asyncio.sleep(0.3)
        line = orjson.loads(gateway.log.getvalue())
        told = [line[name] for name in ("client", "door", "answered", "route", "calls")]
        assert told == ["default", "chat", "demo", ["demo=ok"], 1]
        assert "request" not in line

    run(script)


def test_bodies_are_in_the_log_where_they_are_wanted_without_keys() -> None:
    async def script(gateway: Running) -> None:
        said = {"role": "user", "content": "my key is sk-abcdefghijkl and the sky is blue"}
        await gateway.chat({**HELLO, "messages": [said]}, key="secret-key")
        await asyncio.sleep(0.3)
        line = orjson.loads(gateway.log.getvalue())
        assert "the sky is blue" in line["request"]
        assert orjson.loads(line["answer"])["object"] == "chat.completion"
        assert "sk-abc" not in gateway.log.getvalue()

    run(script, '[server]\nkeys = ["secret-key"]\n[telemetry]\nlog_bodies = true\n')


def test_pieces_that_are_told_at_once_are_in_the_log_too() -> None:
    told, bodies = list[Message](), Bodies()

    async def send(message: Message) -> None:
        told.append(message)

    async def go() -> None:
        tell = bodies.told(send)
        await tell({"type": PIECES, "pieces": [b"a", b"", b"b"]})
        await tell({"type": "http.response.body", "body": b"c"})

    asyncio.run(go())
    assert len(told) == 2
    scrubber = Scrubber(config.parse(DEMO, environment={}))
    assert bodies.line(scrubber)["answer"] == "abc"


def test_a_gateway_that_stops_has_told_its_traces() -> None:
    with collecting() as collector:

        async def script(gateway: Running) -> None:
            url = f"{gateway.url}/v1/chat/completions"
            async with gateway.session.post(url, json=HELLO, headers={"traceparent": PARENT}):
                pass

        run(script, f'[telemetry]\notlp = "{collector.url}"\nservice_name = "mine"\n')
    (server,), (client,) = collector.kinds(SERVER), collector.kinds(CLIENT)
    assert (server.name, server.trace, server.parent) == ("chat demo", PARENT[3:35], PARENT[36:52])
    assert (client.parent, client.service) == (server.id, "mine")
    assert b"canary" not in collector.raw
