"""One conversation with one upstream: a language and a transport make a stream of events.

The gate lives here: `Opened` leaves together with the first real event, so that every failure
before it still has its own HTTP status. So does the honest ending: no `Finish`, no success.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import orjson

from adapters.errors import GatewayError, Truncated
from adapters.framing import Framer, Sse
from adapters.headers import for_client, request_id
from adapters.http import Link, Reply, Timeouts, load
from adapters.protocol import (
    Call,
    Event,
    Events,
    Finish,
    Json,
    Noted,
    Opened,
    ReasoningDelta,
    Receipt,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
)

_AFTER_REASON = 2.0
"""Seconds an upstream has for its usage once it has said why it stopped."""
_BLOCK = (ReasoningDelta, ToolCallStart, ToolCallDelta)


@dataclass(slots=True)
class Heard:
    """What every language's state remembers; each leaf's `State` extends it."""

    model: str = ""
    """The upstream's own name for the model that answered."""
    fingerprint: str | None = None
    tier: str | None = None
    ending: bool = False
    """The reason was given; only usage or the terminator may still come."""


S = TypeVar("S", bound=Heard)


@dataclass(frozen=True, slots=True)
class Exchange(Generic[S]):
    """One request in an upstream's own words, and how to read what comes back."""

    path: str
    body: Json
    receipt: Receipt
    state: S
    streamed: bool
    framing: Callable[[], Framer]
    decode: Callable[[bytes, S], Iterable[Event]]
    close: Callable[[S], Iterable[Event]]
    """Called at the end of input: yields the held `Finish` or raises `Truncated`."""
    decode_answer: Callable[[Any, S], Iterable[Event]]


async def converse(link: Link, exchange: Exchange[S], call: Call) -> Events:
    """Send the request and yield one tuple of events per upstream read."""
    clock = _Clock(link.timeouts, call.deadline)
    body = orjson.dumps(exchange.body)
    reply = await link.post(exchange.path, body, clock.until_headers(exchange.streamed))
    try:
        gate = _Gate(link.name, exchange, reply)
        if not exchange.streamed:
            answer = load(await reply.whole(clock.until_whole()))
            yield gate.through(exchange.decode_answer(answer, exchange.state))
            return
        async for events in _read(reply, exchange, gate, clock):
            yield events
        await reply.settle()
    finally:
        reply.close()


async def _read(reply: Reply, exchange: Exchange[S], gate: _Gate[S], clock: _Clock) -> Events:
    framer, state = exchange.framing(), exchange.state
    first = True
    while True:
        data = await _next_piece(reply, clock, state)
        if first and data.strip():
            first = False
            if exchange.framing is Sse and data.lstrip()[:1] == b"{":
                yield await _unstreamed(data, reply, exchange, gate, clock)
                return
        events: list[Event] = []
        failure: GatewayError | None = None
        try:
            _decode_into(events, framer, data, exchange)
        except GatewayError as error:
            failure = error if data else _cut_short(link_name=gate.name, error=error)
        if failure is not None and not gate.opened and not any(map(_opens, events)):
            raise failure
        clock.heard(events)
        if batch := gate.through(events):
            yield batch
        if failure is not None:
            raise failure
        if events and type(events[-1]) is Finish:
            return


def _decode_into(events: list[Event], framer: Framer, data: bytes, exchange: Exchange[S]) -> None:
    """Decode one read; what stands behind the end is not read."""
    decode, state = exchange.decode, exchange.state
    for frame in framer.feed(data) if data else framer.close():
        events.extend(decode(frame, state))
        if events and type(events[-1]) is Finish:
            return
    if not data:
        events.extend(exchange.close(state))


async def _next_piece(reply: Reply, clock: _Clock, state: Heard) -> bytes:
    if not state.ending:
        return await reply.read(clock.due())
    try:
        return await reply.read(clock.due_after_reason())
    except GatewayError:
        return b""  # it said why it stopped: complete without its usage and terminator


async def _unstreamed(
    data: bytes, reply: Reply, exchange: Exchange[S], gate: _Gate[S], clock: _Clock
) -> tuple[Event, ...]:
    """The upstream ignored `stream: true` and sends one JSON answer."""
    rest = await reply.whole(clock.until_whole())
    return gate.through(exchange.decode_answer(load(data + rest), exchange.state))


def _cut_short(link_name: str, error: GatewayError) -> GatewayError:
    """What stands unfinished at the end of input is a cut, not nonsense."""
    if error.code == "upstream_not_json":
        cut = Truncated(f"Upstream '{link_name}' broke off in the middle of an event.")
        cut.__cause__ = error
        return cut
    return error


def _opens(event: Event) -> bool:
    return type(event) is not Noted


class _Gate(Generic[S]):
    """Holds back until there is something real to say."""

    def __init__(self, name: str, exchange: Exchange[S], reply: Reply) -> None:
        self.name = name
        self.opened = False
        self._exchange = exchange
        self._headers = reply.headers
        self._notes = exchange.receipt

    def through(self, events: Iterable[Event]) -> tuple[Event, ...]:
        if self.opened:
            return tuple(events)
        kept = []
        for event in events:
            if type(event) is Noted:
                self._notes += event.receipt
            else:
                kept.append(event)
        if not kept:
            return ()
        self.opened = True
        return (Opened(self._notes, self._upstream()), *kept)

    def _upstream(self) -> Upstream:
        state = self._exchange.state
        return Upstream(
            name=self.name,
            model=state.model,
            request_id=request_id(self._headers),
            headers=for_client(self._headers),
            fingerprint=state.fingerprint,
            tier=state.tier,
        )


class _Clock:
    """How long to wait for the next bytes, from what was heard so far."""

    def __init__(self, timeouts: Timeouts, deadline: float | None) -> None:
        self._now = asyncio.get_running_loop().time
        self._timeouts = timeouts
        start = self._now()
        self._end = min(start + timeouts.total, deadline or math.inf)
        self._first_event = start + timeouts.first_event
        self._whole = min(start + timeouts.plain, self._end)
        self._content_at: float | None = None
        self._idle = timeouts.idle
        self._reason_at: float | None = None

    def until_headers(self, streamed: bool) -> float:
        return min(self._first_event, self._end) if streamed else self._whole

    def until_whole(self) -> float:
        return self._whole

    def heard(self, events: list[Event]) -> None:
        """Note when content came, and whether a thought or a call is open now."""
        if not events:
            return
        self._content_at = self._now()
        in_block = type(events[-1]) in _BLOCK
        self._idle = self._timeouts.idle_open if in_block else self._timeouts.idle

    def due(self) -> float:
        if self._content_at is None:
            return min(self._first_event, self._end)
        return min(self._now() + self._idle, self._content_at + self._timeouts.content, self._end)

    def due_after_reason(self) -> float:
        if self._reason_at is None:
            self._reason_at = self._now()
        return min(self._reason_at + _AFTER_REASON, self._end)
