"""Upstream tool calls → our events, with the promises every client relies on.

Indexes count from 0 without gaps; a call's deltas come only while it is the last one started; a
call without arguments says `{}`; ids are unique. Every leaf feeds its calls through here, so the
promises are kept once.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import orjson

from adapters.errors import UpstreamError
from adapters.protocol import CallKind, Event, Noted, ToolCallDelta, ToolCallStart
from adapters.receipts import Note
from adapters.shared.history import is_json_object, json_object

_EMPTY = re.compile(r"(?:\s*\{\s*\}\s*(?=\{))++")
_BARE = re.compile(r"\s*\{?\s*\}?\s*")
_MOST_HELD = 64
MOST_CALLS = 1024
"""Of one answer; nobody means so many."""
_CHECKS = 4
_DEEPER: Mapping[str, int] = {"{": 1, "[": 1, "}": -1, "]": -1}
_MARKS = re.compile(r'[{}\[\]"]|\\.?', re.DOTALL)


@dataclass(slots=True)
class End:
    """Finds the end of one JSON object in pieces, each of which is read once."""

    read: int = 0
    """How many pieces were."""
    depth: int = 0
    quoted: bool = False
    escaped: bool = False
    """The next character is."""
    closed: bool = False
    whole: bool = False

    def seen(self, said: list[str]) -> bool:
        """Return whether all pieces so far are one object."""
        while self.read < len(said):
            piece = said[self.read]
            self.read += 1
            if self.closed:
                self.whole &= not piece.strip()
            elif (end := self._end_in(piece)) is not None:
                self.closed = True
                self.whole = not piece[end:].strip() and is_json_object("".join(said[: self.read]))
        return self.whole

    def _end_in(self, piece: str) -> int | None:
        start, self.escaped = int(self.escaped and bool(piece)), self.escaped and not piece
        for mark in _MARKS.finditer(piece, start):
            if mark[0] == '"':
                self.quoted = not self.quoted
            elif not self.quoted:
                self.depth += _DEEPER.get(mark[0], 0)
                if self.depth <= 0:
                    return mark.end()
            self.escaped = mark[0] == "\\"  # the last of its piece
        return None


@dataclass(slots=True)
class _Open:
    """A call that began upstream."""

    id: str
    name: str
    index: int = -1
    """Ours; -1 while it waits behind an unfinished one."""
    said: list[str] = field(default_factory=list)
    lead: str = ""
    """An empty object at the beginning: it waits, because the real one may stand behind it."""
    begun: bool = False
    """Something else than that was said: pieces leave as they are."""
    live: bool = False
    """Its pieces leave as they come (else they wait for the end)."""
    free: bool = False
    """A custom call in the upstream's own words: its input is text, not JSON."""
    checks: int = 0
    end: End = field(default_factory=End)

    @property
    def text(self) -> str:
        return "".join(self.said) + self.lead

    def complete(self) -> bool:
        return self.free or self.is_object()

    def is_object(self) -> bool:
        """Parsing is quickest, but what is asked with every piece is read piece by piece."""
        self.checks += 1
        if self.checks > _CHECKS and not self.lead:
            return self.end.seen(self.said)
        return json_object(self.text) is not None


@dataclass(slots=True)
class Calls:
    request_id: str
    """Made ids derive from it: no randomness in translation."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Upstream's name → the client's, where they differ."""
    custom: frozenset[str] = frozenset()
    """Upstream names of free-text tools, sent as functions with one string `input`."""
    parallel: bool = True
    """False: only the first call is passed on."""
    _calls: dict[Hashable, _Open] = field(default_factory=dict)
    _waiting: deque[_Open] = field(default_factory=deque)
    _current: _Open | None = None
    _started: int = 0
    _ids: set[str] = field(default_factory=set)
    _left_out: int = 0

    def __bool__(self) -> bool:
        return bool(self._calls)

    def start(
        self, key: Hashable, identity: str | None, name: str, kind: CallKind = "function"
    ) -> Iterator[Event]:
        """A call begins; `key` is whatever the upstream tells its pieces apart by."""
        if type(name) is not str or not name:
            raise TypeError(f"a call has the name {name!r}")
        if len(self._calls) >= MOST_CALLS:
            raise too_many()
        call = _Open(self._unique(identity), name, free=kind == "custom")
        self._calls[key] = call
        if not self.parallel and len(self._calls) > 1:
            self._left_out += 1
            return
        if self._current is not None and not self._current.complete():
            # Its rest may still come between the pieces of this one: hold this one back.
            self._waiting.append(call)
            return
        yield from self._end_current()
        yield from self._begin(call)

    def is_whole(self, key: Hashable) -> bool:
        """Nothing more can belong to this call: its arguments are one JSON object."""
        return self._calls[key].is_object()

    def delta(self, key: Hashable, piece: str) -> Iterable[Event]:
        """A piece of a call's arguments."""
        if not piece:
            return ()
        if type(piece) is not str:
            raise TypeError(f"a piece of a call's arguments is {piece!r}")
        call = self._calls[key]
        if not call.live or self._waiting:
            return self._out_of_turn(call, piece)
        if call.begun:  # as in `_pass_on`: most pieces come here
            call.said.append(piece)
            return (ToolCallDelta(call.index, piece),)
        return self._pass_on(call, piece)

    def deltas(self, key: Hashable, pieces: list[str]) -> list[Event]:
        """Several pieces of a call that came together."""
        events: list[Event] = []
        call = self._calls[key]
        for at, piece in enumerate(pieces):
            if call.begun and call.live and not self._waiting:  # so it stays
                call.said += pieces[at:]
                events += map(partial(ToolCallDelta, call.index), pieces[at:])
                break
            events += self.delta(key, piece)
        return events

    def _pass_on(self, call: _Open, piece: str) -> Iterable[Event]:
        """What may leave of a call whose turn it is."""
        if call.begun or call.free:
            call.said.append(piece)
            return (ToolCallDelta(call.index, piece),)
        piece, call.lead = call.lead + piece, ""
        meant = _behind_empty(piece)
        notes: tuple[Noted, ...] = ()
        if meant != piece:
            text = f"the arguments of call {call.index} ({call.name}) began with an empty object"
            notes = (Noted((Note("empty_arguments_dropped", "tool_calls", text),)),)
        if len(meant) < _MOST_HELD and _BARE.fullmatch(meant):
            call.lead = meant
            return notes
        call.begun = True
        call.said.append(meant)
        return (*notes, ToolCallDelta(call.index, meant))

    def _out_of_turn(self, call: _Open, piece: str) -> Iterator[Event]:
        """A piece of a call that is held back or over, or that others wait for."""
        if call.index >= 0 and call is not self._current:
            if piece.strip():
                text = f"a piece of call {call.index} came after the call was complete"
                yield Noted((Note("arguments_late", "tool_calls", text),))
            return
        if call.live:
            yield from self._pass_on(call, piece)
        else:
            call.said.append(piece)
        if self._waiting and call is self._current and piece.rstrip()[-1:] == "}":
            while self._waiting and self._current is not None and self._current.complete():
                yield from self._advance()

    def whole(
        self, key: Hashable, identity: str | None, name: str, arguments: str
    ) -> Iterator[Event]:
        """A call that comes in one piece."""
        yield from self.start(key, identity, name)
        yield from self.delta(key, arguments)
        yield from self._release(self._calls[key])

    def _release(self, call: _Open) -> Iterator[Event]:
        """Nothing follows the empty object: it is all there is."""
        if call.lead.strip():
            call.said.append(call.lead)
            yield ToolCallDelta(call.index, call.lead)
        call.lead = ""

    def close(self) -> Iterator[Event]:
        """No more calls so far: bring out what waits and complete what is open."""
        while self._waiting:
            yield from self._advance()
        yield from self._end_current()
        if self._left_out:
            text = f"{self._left_out} further calls were left out: parallel_tool_calls is false"
            yield Noted((Note("parallel_calls_dropped", "parallel_tool_calls", text),))
            self._left_out = 0

    def _advance(self) -> Iterator[Event]:
        yield from self._end_current()
        call = self._waiting.popleft()
        yield from self._begin(call)
        if call.live and call.said:
            text, call.said, call.end = call.text, [], End()
            yield from self._pass_on(call, text)

    def _begin(self, call: _Open) -> Iterator[Event]:
        call.index = self._started
        self._started += 1
        self._current = call
        custom = call.name in self.custom
        call.live = not custom
        name = self.names.get(call.name, call.name)
        kind: CallKind = "custom" if custom or call.free else "function"
        yield ToolCallStart(call.index, call.id, name, kind)

    def _end_current(self) -> Iterator[Event]:
        call, self._current = self._current, None
        if call is None:
            return
        joined = call.text
        yield from self._release(call)
        if call.name in self.custom:
            yield from _custom_input(call.index, _behind_empty(joined))
        elif not joined.strip() and not call.free:
            yield ToolCallDelta(call.index, "{}")
        elif not call.complete():
            text = f"the arguments of call {call.index} ({call.name}) are not a JSON object"
            yield Noted((Note("arguments_invalid", "tool_calls", text),))
        call.live = False

    def _unique(self, identity: str | None) -> str:
        """Keep the upstream's id if no other call has it, else make one from the request's."""
        if not isinstance(identity, str) or not identity or identity in self._ids:
            identity = made_id(self.request_id, len(self._calls))
        self._ids.add(identity)
        return identity


def too_many() -> UpstreamError:
    text = f"The upstream's answer has more than {MOST_CALLS} tool calls."
    return UpstreamError(text, code="upstream_too_large")


def made_id(request_id: str, position: int) -> str:
    return call_id(f"{request_id}/{position}")


def call_id(text: str) -> str:
    """An id that depends on this text alone."""
    digest = hashlib.sha256(text.encode()).digest()
    return "call_" + base64.b32encode(digest)[:24].decode().lower()


def _behind_empty(text: str) -> str:
    """Of `{}{…}`, which some servers send, the object behind the empty one is meant."""
    empty = _EMPTY.match(text)
    return text[empty.end() :] if empty else text


def _custom_input(index: int, arguments: str) -> Iterator[Event]:
    """Unwrap `{"input": "…"}`; whatever else the model wrote is passed on as it is."""
    try:
        wrapped = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        wrapped = None
    text = wrapped.get("input") if isinstance(wrapped, dict) else None
    if not isinstance(text, str):
        note = Note("custom_input_invalid", "tool_calls", f"call {index} did not wrap its input")
        yield Noted((note,))
        text = arguments
    if text:
        yield ToolCallDelta(index, text)
