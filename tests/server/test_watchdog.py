"""What holds the event loop is told of, with its place and the request; nothing else is."""

from __future__ import annotations

import asyncio
import io
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import orjson
import pytest

from adapters.protocol import ChatRequest, Json
from middleware.server.log import Log
from middleware.server.watchdog import LONGEST, Watchdog
from tests.support.adapters import FakeAdapter, Step
from tests.support.door import ANSWER, door
from tests.support.fold import run


def spin(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def hold(seconds: float) -> None:
    """In calls of C alone: no other thread has a turn meanwhile."""
    begun = time.monotonic()
    sum(range(1_000_000))
    once = time.monotonic() - begun
    sum(range(round(1_000_000 * seconds / once)))


def spinning(seconds: float, block: Callable[[float], None] = spin) -> FakeAdapter:
    """A model that thinks in the loop's own thread."""

    def think(_: ChatRequest) -> Iterator[Step]:
        block(seconds)
        yield ANSWER

    return FakeAdapter(usual=think)


async def until_told(log: Log) -> None:
    await asyncio.sleep(LONGEST)  # for the line to come from its thread
    log.flush()


def watched(
    models: Sequence[tuple[str, float]],
    stream: bool = False,
    block: Callable[[float], None] = spin,
) -> tuple[list[str], list[Json]]:
    """Ask models one after the other; the ids of the answers, and what held the loop."""
    app = door({name: spinning(seconds, block) for name, seconds in models})
    log = app.app.chat.log

    async def ask() -> list[str]:
        dog = Watchdog(log)
        dog.start()
        answers = [await app.chat(name, stream=stream) for name, _ in models]
        await until_told(log)
        dog.stop()
        return [one.headers["x-request-id"] for one in answers]

    return run(ask()), [line for line in app.lines() if "loop_blocked_ms" in line]


@pytest.mark.parametrize("stream", [True, False])
def test_a_hold_is_told_with_its_length_its_place_and_its_request(stream: bool) -> None:
    (_, slow, _), held = watched([("a", 0.0), ("b", 0.8), ("c", 0.0)], stream)
    (line,) = [line for line in held if line.get("id") == slow]
    assert 300 < line["loop_blocked_ms"] < 4000
    assert line["at"].startswith("middleware/server/answering.py:")
    assert "Answer._respond_" in line["at"]
    assert set(line) == {"time", "loop_blocked_ms", "at", "id"}


def test_a_hold_that_lets_no_thread_look_is_told_when_it_lets_go() -> None:
    (_, slow), held = watched([("a", 0.0), ("b", 0.8)], block=hold)
    (line,) = [line for line in held if line.get("id") == slow]
    assert line["loop_blocked_ms"] > 200


def test_what_is_quick_is_not_told() -> None:
    ids, held = watched([(name, 0.01) for name in "abcde"])
    assert len(ids) == 5
    assert not [line for line in held if "id" in line]


def test_what_no_request_did_has_no_id() -> None:
    out = io.StringIO()

    async def block() -> None:
        dog = Watchdog(log := Log(out))
        dog.start()
        await asyncio.sleep(0.05)
        spin(0.8)
        await until_told(log)
        dog.stop()

    run(block())
    lines = [orjson.loads(line) for line in out.getvalue().splitlines()]
    assert any(line["loop_blocked_ms"] > 300 and "id" not in line for line in lines)


def test_it_stops_with_its_loop() -> None:
    async def watch() -> Watchdog:
        dog = Watchdog(Log(io.StringIO()))
        dog.start()
        await asyncio.sleep(0.05)
        return dog

    dogs = [asyncio.run(watch()) for _ in range(2)]  # the loop is gone, and nobody said stop
    time.sleep(LONGEST)
    dogs[0].stop()
    assert not [one for one in threading.enumerate() if one.name == "watchdog"]


@pytest.mark.parametrize(("level", "told"), [("info", True), ("warning", True), ("error", False)])
def test_people_are_told_in_a_line_too(level: str, told: bool) -> None:
    out = io.StringIO()

    async def tell() -> None:
        log = Log(out, level, readable=True)
        log.write(
            {"loop_blocked_ms": 250, "at": "adapters/wire/json_text.py:30 load", "id": "req_1"}
        )
        log.flush()

    run(tell())
    said = "loop_blocked_ms: 250  at: adapters/wire/json_text.py:30 load  id: req_1"
    assert (said in out.getvalue()) is told
