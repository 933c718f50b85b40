"""One conversation with one upstream: a language and a transport make a stream of events.

The gate lives here: `Opened` leaves together with the first real event, so that every failure
before it still has its own HTTP status. So does the honest ending: no `Finish`, no success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import orjson

from adapters.errors import GatewayError, Refused, Truncated, UpstreamError
from adapters.protocol import (
    Event,
    Events,
    Finish,
    Json,
    Noted,
    Opened,
    RequestContext,
    Upstream,
    value_class,
)
from adapters.receipts import Note, Receipt
from adapters.shared.calls import Calls
from adapters.wire.alike import Alike
from adapters.wire.capture import Source
from adapters.wire.clock import Clock
from adapters.wire.failures import too_large
from adapters.wire.framing import BYTE_ORDER_MARK, Framer, Sse
from adapters.wire.headers import IDENTITY, for_client
from adapters.wire.http import Link
from adapters.wire.json_text import load
from adapters.wire.reply import BROKEN, MAX_ANSWER

T = TypeVar("T")
_MOST_PARTS = 4096
"""In one list; nobody means so many, and a stream has each in a frame of its own."""
_FEW = 4
"""Frames that come at once: so many are read one by one as soon as together."""
_GUESSES = 8
"""In vain: then it is not tried again what frames look like."""
_MISSHAPEN = (AttributeError, LookupError, TypeError, ValueError)
"""What reading JSON of another shape than the upstream's language has raises."""


@dataclass(slots=True)
class AnswerState:
    """What every language's state remembers; each leaf's `State` extends it."""

    upstream: str = field(default="upstream", init=False)
    """Its name, for errors; like `secrets`, which none of them repeats, it is the link's."""
    secrets: tuple[str, ...] = field(default=(), init=False)
    calls: Calls = field(default_factory=lambda: Calls("req_local"))
    model: str = ""
    """The upstream's own name for the model that answered."""
    fingerprint: str | None = None
    tier: str | None = None
    ending: bool = False
    """The reason was given; only usage or the terminator may still come."""
    busy: bool = False
    """A thought or a call is open, also one that says nothing: the upstream is at work."""
    raw: bytes = b""
    """What is being read, for calls whose arguments are objects: their numbers keep all digits."""
    left_out: dict[str, Note] = field(default_factory=dict)
    """Members in a shape nobody can read, which the answer can do without; each is named once."""
    alike: Alike[Any] | None = None
    """What the next frames probably look like; a hint, which no answer needs."""
    guesses: int = 0
    """How often that may still be worked out: frames come together, and are alike at all."""

    def optional(self, holder: Json, name: str, kind: type[T]) -> T | None:
        """A member that text, calls and the ending do not need: of another type it is left out."""
        value = holder.get(name)
        if not value or isinstance(value, kind):
            return value or None
        self.leave_out(name, value)
        return None

    def entries(self, holder: Json, name: str) -> list[Json]:
        """The objects of such a list."""
        listed = self.optional(holder, name, list) or []
        if odd := [one for one in listed if not isinstance(one, dict)]:
            self.leave_out(name, odd[0])
        return [one for one in listed if isinstance(one, dict)]

    def unreadable(self, what: str = "sent an answer in no shape of its language") -> UpstreamError:
        return UpstreamError(f"Upstream '{self.upstream}' {what}.", code="upstream_unreadable")

    def cut(self, lacking: str) -> Truncated:
        text = f"Upstream '{self.upstream}' ended its stream without {lacking}: it is cut."
        return Truncated(text)

    def leave_out(self, name: str, value: Any) -> None:
        text = f"the upstream sent {type(value).__name__} there, which means nothing"
        self.left_out.setdefault(name, Note("answer_member_dropped", name, text))


def few(parts: Any) -> Any:
    """What is read one by one, each at the price of an event."""
    if parts and len(parts) > _MOST_PARTS:
        text = f"The upstream's answer has a list of more than {_MOST_PARTS} parts."
        raise UpstreamError(text, code="upstream_too_large")
    return parts


def require_text(value: Any) -> str:
    """Text; anything else in its place makes the answer unreadable."""
    if type(value) is not str:
        raise TypeError(f"text is {type(value).__name__}")
    return value


def text_in(holder: Any, name: str) -> str:
    """A member that is text; else empty."""
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, str) else ""


def quoted(reason: Any) -> str:
    """Why an answer ended, in the upstream's own words: whatever is said, it was an end."""
    if not reason:
        return ""
    return reason if type(reason) is str else orjson.dumps(reason).decode()[:40]


S = TypeVar("S", bound=AnswerState)


@value_class
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


async def converse(link: Link, exchange: Exchange[S], call: RequestContext) -> Events:
    """Send the request and yield one tuple of events per upstream read."""
    clock = Clock(link.timeouts, call.deadline, call.now)
    due = clock.until_headers(exchange.streamed)
    if link.opened_by:
        link = link.opened_with(call.key)
    # Not in a variable of its own: what goes up would stay as long as what comes down.
    reply = await link.post(exchange.path, orjson.dumps(exchange.body), due, call.capture)
    try:
        listener, state = Listener(link, exchange, reply.headers), exchange.state
        events: Sequence[Event] = ()
        while not listener.over:
            due = clock.whole
            if not listener.collecting:
                due = clock.due(events, state.busy, state.ending)
            try:  # as `next_piece` does, which would be a coroutine more for each
                data = await reply.arriving(due)
                reply.heard(data)
            except BROKEN as error:
                data = _instead(reply.broken(error), listener, error)
            except GatewayError as error:
                data = _instead(error, listener)
            clock.alive = True
            if events := listener.feed(data, listener.collecting and reply.is_whole()):
                yield events
        if listener.failure is not None:
            raise link.explained(listener.failure)
        await reply.settle()
    finally:
        reply.close()


async def next_piece(
    source: Source, clock: Clock, listener: Listener[S], said: Sequence[Event]
) -> bytes:
    """Wait for it; `said` is what the piece before it said."""
    state = listener.state
    due = clock.whole if listener.collecting else clock.due(said, state.busy, state.ending)
    try:
        data = await source.read(due)
    except GatewayError as error:
        data = _instead(error, listener)
    clock.alive = True
    return data


def _instead(error: GatewayError, listener: Listener[S], cause: Exception | None = None) -> bytes:
    """What is read where nothing came; raise the error where that breaks the answer."""
    error.__cause__ = cause or error.__cause__
    if listener.collecting:
        raise error
    if listener.state.ending:
        return b""  # it said why it stopped: complete without its usage and terminator
    if isinstance(error, Truncated):  # a plain answer was billed, of this nothing was said yet
        error.again = "never" if listener.opened else "elsewhere"
    raise error


class Listener(Generic[S]):
    """The bytes of one answer → its events, whatever the network cut them into. Pure."""

    _framer: Framer
    """Of a stream."""

    def __init__(self, link: Link, exchange: Exchange[S], headers: Mapping[str, str]) -> None:
        self.over = False
        """`Finish` was said, or the answer broke; what stands behind it is not read."""
        self.failure: GatewayError | None = None
        """What broke the answer, behind the events already read from the same piece."""
        self.collecting = not exchange.streamed
        """The answer is one JSON text, read at the end of input."""
        self._begun = self.collecting
        """It is known whether it is."""
        self._exchange = exchange
        self.state = exchange.state
        self.state.upstream, self.state.secrets = link.name, link.secrets
        self._headers = headers
        if exchange.streamed:
            self._framer = exchange.framing()
        self._collected = bytearray()
        self.opened = False
        self._crowded = False
        """Frames came together."""
        self._notes = exchange.receipt

    def feed(self, data: bytes, is_last: bool = False) -> tuple[Event, ...]:
        """Return what this piece says; b"" is the end of input, as is the last of a JSON text."""
        if not self._begun:
            self._begin(data)
        events: list[Event] = []
        try:
            if self.collecting:
                self._collect(data, events, is_last)
            elif data:
                decode, state, frames = self._exchange.decode, self.state, self._framer.feed(data)
                for frame in frames if len(frames) <= _FEW else self._odd(frames, events):
                    events += decode(frame, state)
                    if events and type(events[-1]) is Finish:
                        self._finish(events)
                        break
            else:
                self._end(events)
        except (GatewayError, *_MISSHAPEN) as error:
            self._fail(error, events)
        return tuple(events) if self.opened else self._through(events)

    def _odd(self, frames: list[bytes], events: list[Event]) -> Iterator[bytes]:
        """Those to be read one by one; what others say, which are alike, is added here."""
        state, rest = self.state, iter(frames)
        if not self._crowded:
            self._crowded, state.guesses = True, _GUESSES
        for frame in rest:
            odd = frame
            if (alike := state.alike) is not None:
                texts, odd = alike.texts(frame, rest)
                if texts:
                    events += alike.said(texts, state)
                    state.guesses = _GUESSES
            if odd:
                yield odd

    def _fail(self, error: Exception, said: Sequence[Event]) -> None:
        """`said` before it, by the same piece."""
        begun = self.opened or any(type(event) is not Noted for event in said)
        failure = error if isinstance(error, GatewayError) else self.state.unreadable()
        failure.__cause__ = error.__cause__ if failure is error else error
        if not (begun or isinstance(failure, Refused) or failure.again == "same"):
            failure.again = "elsewhere"  # nothing was said: another may answer
        self.failure, self.over = failure, True

    def _begin(self, data: bytes) -> None:
        """See whether the upstream ignored `stream: true` and sends one JSON answer."""
        start = data.removeprefix(BYTE_ORDER_MARK).lstrip()[:1]
        self._begun = bool(start)
        if start == b"{" and isinstance(self._framer, Sse):
            self.collecting = True

    def _collect(self, data: bytes, events: list[Event], is_last: bool) -> None:
        if len(self._collected) + len(data) > MAX_ANSWER:
            raise too_large(self.state.upstream, MAX_ANSWER)
        if data and not is_last:
            self._collected += data
            return
        raw = self.state.raw = bytes(self._collected) + data
        said: list[Event] = []
        self._take(self._exchange.decode_answer(load(raw), self.state), said)
        self._require_finish()
        events += said

    def _end(self, events: list[Event]) -> None:
        try:
            for frame in self._framer.close():
                if not self.over:
                    self._take(self._exchange.decode(frame, self.state), events)
        except GatewayError as error:
            if error.code != "upstream_not_json":
                raise
            # Half an event at the end of input is a cut, and a cut is for `close` to judge.
        if not self.over:
            self._take(self._exchange.close(self.state), events)
            self._require_finish()

    def _take(self, said: Iterable[Event], events: list[Event]) -> None:
        events.extend(said)
        if events and type(events[-1]) is Finish:
            self._finish(events)

    def _finish(self, events: list[Event]) -> None:
        self.over = True
        if left_out := self.state.left_out:
            events.insert(-1, Noted(tuple(left_out.values())))

    def _require_finish(self) -> None:
        if not self.over:
            text = f"Upstream '{self.state.upstream}' ended its answer without a reason."
            raise Truncated(text)

    def _through(self, events: list[Event]) -> tuple[Event, ...]:
        """The gate: hold back until there is something real to say."""
        if Noted in map(type, events):
            self._notes += tuple(
                note for event in events if type(event) is Noted for note in event.receipt
            )
            events = [event for event in events if type(event) is not Noted]
        if not events:
            return ()
        self.opened = True
        return (Opened(self._notes, self._answerer()), *events)

    def _answerer(self) -> Upstream:
        state, told = self.state, for_client(self._headers)
        return Upstream(
            name=state.upstream,
            model=state.model if isinstance(state.model, str) else "",
            request_id=told.get(IDENTITY, ""),
            headers=told,
            fingerprint=state.fingerprint if isinstance(state.fingerprint, str) else None,
            tier=state.tier if isinstance(state.tier, str) else None,
        )
