"""A stream on its way out: what is sent when, and pings where nothing is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import chain
from typing import Any

import pytest
from starlette.types import Message

from adapters.protocol import Event, Noted, TextDelta
from middleware.doors.chat.chunks import Chunks
from middleware.doors.chat.words import Heading
from middleware.doors.door import PING
from middleware.server.transport.responses import EventStream, raw, send_json

BEAT = 0.01
SLOW = 60.0
ID = (b"x-request-id", b"req_1")


class Wire:
    """Where an app sends to; a test can hold it back, as a client does that does not read."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self._moved = asyncio.Event()
        self._held: asyncio.Semaphore | None = None
        self.broken = False
        """Servers may raise of a connection that is gone: ASGI says so since 2.4."""

    async def send(self, message: Message) -> None:
        if self.broken:
            raise OSError("the client is gone")
        if self._held is not None:
            await self._held.acquire()
        self.sent.append(dict(message))
        self._moved.set()

    def hold(self) -> None:
        self._held = asyncio.Semaphore(0)

    async def release(self, count: int) -> None:
        """Let messages through, one after the other."""
        assert self._held is not None
        for _ in range(count):
            self._held.release()
            await asyncio.sleep(0.001)

    async def until(self, count: int) -> None:
        """Wait for so many messages."""
        async with asyncio.timeout(5):
            while len(self.sent) < count:
                self._moved.clear()
                await self._moved.wait()

    def kinds(self) -> list[str]:
        return [message["type"].rpartition(".")[2] for message in self.sent]

    def bodies(self) -> list[bytes]:
        return [message["body"] for message in self.sent if "body" in message]


Script = Callable[[EventStream, Wire], Awaitable[Any]]


def play(script: Script, heartbeat: float = SLOW) -> Wire:
    async def scene() -> Wire:
        wire = Wire()
        chunks, loop = Chunks(Heading("", 0, "")), asyncio.get_running_loop()
        stream = EventStream(wire.send, [ID], chunks, heartbeat, loop)
        try:
            await script(stream, wire)
        finally:
            stream.stop()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait_for(asyncio.gather(*others, return_exceptions=True), 5)
        return wire

    return asyncio.run(scene())


async def quiet() -> None:
    """A few heartbeats long."""
    await asyncio.sleep(BEAT * 5)


def test_a_stream_says_what_it_is_and_that_nobody_may_hold_it_back() -> None:
    async def script(stream: EventStream, _: Wire) -> None:
        await stream.start([(b"x-upstream-model", b"m")])
        await stream.write(b"a")
        await stream.last(b"b")

    first, *rest = play(script).sent
    assert first["status"] == 200
    assert dict(first["headers"]) == {
        b"content-type": b"text/event-stream; charset=utf-8",
        b"cache-control": b"no-cache, no-transform",
        b"x-accel-buffering": b"no",
        b"x-request-id": b"req_1",
        b"x-upstream-model": b"m",
    }
    assert [(message["body"], message["more_body"]) for message in rest] == [
        (b"a", True),
        (b"b", False),
    ]


PAIR: list[tuple[Event, ...]] = [(TextDelta("a"),), (Noted(()),), (TextDelta("b" * 100),)]


@pytest.mark.parametrize(
    ("batches", "together", "kinds"),
    [
        (PAIR, True, ["start", "pieces", "body"]),
        (PAIR, False, ["start", "body", "body", "body", "body"]),
        ([*PAIR, (TextDelta("c" * 70_000),)], True, ["start", *["body"] * 5]),
    ],
)
def test_what_several_batches_say_is_told_at_once_where_pieces_stay_apart(
    batches: list[tuple[Event, ...]], together: bool, kinds: list[str]
) -> None:
    async def script(stream: EventStream, _: Wire) -> None:
        await stream.start()
        await stream.write_each(batches, together)
        await stream.last(b"end")

    wire, alone = play(script), Chunks(Heading("", 0, ""))
    assert wire.kinds() == kinds
    said = [message.get("pieces", [message.get("body")]) for message in wire.sent[1:]]
    assert [*chain.from_iterable(said)] == [*map(alone.render, batches), b"end"]


def test_what_is_told_at_once_waits_for_a_heartbeat_that_is_under_way() -> None:
    async def script(stream: EventStream, wire: Wire) -> None:
        wire.hold()
        await asyncio.sleep(BEAT * 2)
        writing = asyncio.create_task(stream.write_each(PAIR, True))
        await wire.release(3)
        await writing

    assert play(script, BEAT).kinds()[:3] == ["start", "body", "pieces"]


def test_silence_before_the_first_event_starts_the_stream_with_pings() -> None:
    async def script(stream: EventStream, wire: Wire) -> None:
        await wire.until(4)
        assert stream.started
        await stream.last(b"end")

    wire = play(script, BEAT)
    first, *_ = wire.sent
    assert (first["status"], ID in first["headers"]) == (200, True)
    *pings, end = wire.bodies()
    assert [message["more_body"] for message in wire.sent[1:]] == [True] * len(pings) + [False]
    assert end == b"end"
    assert set(pings) == {PING}
    assert len(pings) >= 3


def test_silence_after_an_event_is_filled_with_pings_of_their_own() -> None:
    async def script(stream: EventStream, wire: Wire) -> None:
        await stream.start()
        await stream.write(b"data: 1\n\n")
        await wire.until(5)
        await stream.write(b"data: 2\n\n")
        await stream.last(b"data: 3\n\n")

    bodies = play(script, BEAT).bodies()
    assert [body for body in bodies if body != PING] == [
        *(b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n")
    ]
    assert bodies[0] == b"data: 1\n\n"
    assert bodies[1:4] == [PING] * 3


def test_a_stream_that_moves_is_not_pinged() -> None:
    async def script(stream: EventStream, _: Wire) -> None:
        await stream.start()
        for _number in range(20):
            await stream.write(b"data")
            await asyncio.sleep(BEAT / 2)
        await stream.last(b"")

    # A heartbeat is long against the pauses, so that a busy machine does not ring it.
    assert PING not in play(script, BEAT * 100).bodies()


@pytest.mark.parametrize("started", [True, False])
def test_nothing_follows_the_end(started: bool) -> None:
    async def script(stream: EventStream, _: Wire) -> None:
        if started:
            await stream.start()
            await stream.last(b"end")
        else:
            stream.stop()
        await quiet()

    assert play(script, BEAT).bodies() == [b"end"] * started


def test_a_stream_ends_once() -> None:
    async def script(stream: EventStream, _: Wire) -> None:
        await stream.start()
        await stream.last(b"end")
        await stream.last(b"error")

    assert play(script).bodies() == [b"end"]


def test_a_client_that_does_not_read_is_not_pinged() -> None:
    async def script(stream: EventStream, wire: Wire) -> None:
        await stream.start()
        wire.hold()
        writing = asyncio.ensure_future(stream.write(b"data"))
        await quiet()
        await wire.release(2)
        await writing
        await stream.last(b"end")

    assert play(script, BEAT).bodies() == [b"data", b"end"]


@pytest.mark.parametrize("last", [True, False])
def test_a_write_waits_for_a_ping_under_way(last: bool) -> None:
    """Else the body of one would reach the server before the head of the other."""

    async def script(stream: EventStream, wire: Wire) -> None:
        wire.hold()
        await quiet()
        assert stream.started
        writing = asyncio.ensure_future(stream.last(b"end") if last else stream.write(b"data"))
        await quiet()
        assert wire.sent == []
        await wire.release(3)
        await writing

    wire = play(script, BEAT)
    assert wire.kinds() == ["start", "body", "body"]
    assert wire.bodies() == [PING, b"end" if last else b"data"]


def test_a_server_that_stops_during_a_ping_still_says_so() -> None:
    async def script(stream: EventStream, wire: Wire) -> None:
        await stream.start()
        wire.hold()
        await asyncio.sleep(3 * BEAT)
        writing = asyncio.ensure_future(stream.write(b"data: a\n\n"))
        await asyncio.sleep(BEAT)
        writing.cancel()
        await asyncio.wait([writing])
        ending = asyncio.create_task(stream.last(b"data: error\n\n"))
        await wire.release(2)
        await ending

    assert play(script, BEAT).bodies() == [PING, b"data: error\n\n"]


def test_a_client_that_leaves_during_a_ping_ends_it() -> None:
    async def script(stream: EventStream, wire: Wire) -> None:
        wire.hold()
        await quiet()
        writing = asyncio.ensure_future(stream.write(b"data"))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing

    assert play(script, BEAT).sent == []


def test_a_body_has_its_type_and_length() -> None:
    async def scene() -> list[Message]:
        wire = Wire()
        await send_json(wire.send, 418, b"{}", [ID])
        return wire.sent

    start, body = asyncio.run(scene())
    assert start["status"] == 418
    assert start["headers"] == [
        *((b"content-type", b"application/json"), (b"content-length", b"2"), ID)
    ]
    assert body == {"type": "http.response.body", "body": b"{}"}


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("plain", b"plain"),
        ("gpt\r\nset-cookie: a", b"gpt??set-cookie: a"),
        ("a\x00\x1b\x7f\u2028", b"a????"),
        ("é", b"\xe9"),
        ("模型", b"??"),
        ("\udcff", b"?"),
    ],
)
def test_a_header_stays_one_line(value: str, sent: bytes) -> None:
    assert raw({"x-upstream-model": value}) == [(b"x-upstream-model", sent)]


WAYS: Mapping[str, Callable[[EventStream], Awaitable[None]]] = {
    "a piece": lambda stream: stream.write(b"a"),
    "several": lambda stream: stream.write_each([()], True),
    "the last": lambda stream: stream.last(b"a"),
}


@pytest.mark.parametrize("write", WAYS.values(), ids=WAYS)
def test_behind_a_ping_that_could_not_be_sent_nothing_is(
    write: Callable[[EventStream], Awaitable[None]],
) -> None:
    async def script(stream: EventStream, wire: Wire) -> None:
        await stream.start()
        wire.broken = True
        await quiet()
        with pytest.raises(OSError, match="gone"):
            await write(stream)

    assert play(script, BEAT).kinds() == ["start"]
