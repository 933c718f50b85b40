"""Events → the frames of a streamed answer, each with its number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any

import orjson

from adapters.errors import GatewayError
from adapters.protocol import (
    Event,
    Finish,
    Json,
    Opened,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from adapters.receipts import Receipt
from middleware.doors.bursts import BURST
from middleware.doors.endpoint import SSE
from middleware.doors.responses.errors import failure
from middleware.doors.responses.output import CALLS, DELTAS, TEXT, THOUGHT, Items
from middleware.doors.responses.response_object import (
    Parts,
    ResponseHeading,
    ResponseStatus,
    how_it_ended,
    own_words,
    status_of,
)
from middleware.doors.responses.tools import ToolSet

_dumps, _logprobs_of = orjson.dumps, attrgetter("logprobs")
# What no JSON has: between the number of a frame and its piece, and between two frames.
_NAME, _NEXT = orjson.Fragment(b"\0"), orjson.Fragment(b"\1")
_BELONGS: Mapping[type[Event], Set[str]] = {
    TextDelta: {TEXT},
    ReasoningDelta: {THOUGHT},
    ToolCallDelta: CALLS,
}
"""What is open where an event is a piece of it."""


@lru_cache(maxsize=64)
def _head(kind: str) -> bytes:
    """A frame up to its number, as a format; there are some twenty kinds."""
    return b'event: %b\ndata: {"type":"%b","sequence_number":%%d' % ((kind.encode(),) * 2)


@lru_cache(maxsize=8)
def _head_of_pieces(kind: str) -> bytes:
    """A frame up to the place of its piece."""
    name = f"{DELTAS[kind]}.delta".encode()
    return b'event: %b\ndata: {"type":"%b"' % (name, name)


_CREATED = _head("response.created") % 0 + b',"response":'
_IN_PROGRESS = b"}\n\n" + _head("response.in_progress") % 1 + b',"response":'


class Frames:
    """Writes one answer; `response.completed`, `incomplete` or `failed` is the last."""

    media_type = SSE

    def __init__(self, heading: ResponseHeading, tools: ToolSet, secret: bytes) -> None:
        self._heading = heading
        self._items = Items(heading.id, tools, secret, self)
        self._frames: list[bytes] = []
        self._head = b""
        """Of the next piece, up to its number."""
        self._number = 0
        self._told: Json = {}

    def keep_for_last_frame(self, receipt: Receipt) -> None:
        self._items.late += receipt

    def tell(self, member: str, value: Any) -> None:
        self._told[member] = value

    def heartbeat(self) -> bytes:
        """An event, as some clients count no comment; none that would begin the answer anew."""
        if self._number == 0:
            self._begin()
        elif not self._items.output:
            self._object("in_progress", self._heading.begun())
        else:
            self._frames += (_head("keepalive") % self._number, b"}\n\n")
            self._number += 1
        return self._written()

    def error_frame(self, error: GatewayError, request_id: str, untold: Receipt) -> bytes:
        items = self._items
        if self._number == 0:
            self._begin()
        late = tuple(dict.fromkeys((*items.late, *untold)))
        own = own_words(late, self._told, None)
        why = failure(error, request_id)
        for item in items.output[-1:]:
            item["status"] = "incomplete" if item["status"] == "in_progress" else item["status"]
        failed = self._heading.ended(status_of("failed", error=why), items.output, None, own)
        self._object("failed", failed)
        items.listener = None
        return self._written()

    def render(self, events: Sequence[Event]) -> bytes:
        if len(events) >= BURST:
            self._write_runs(events)
            return self._written()
        items, frames = self._items, self._frames
        opened, head, number, pieces = items.open, self._head, self._number, items.pieces
        for event in events:
            # What makes up almost all of a stream comes first.
            if type(event) is TextDelta and opened == TEXT and not event.logprobs:
                piece = event.text
            elif type(event) is ToolCallDelta and opened in CALLS:
                piece = event.arguments
            elif type(event) is ReasoningDelta and opened == THOUGHT:
                piece = event.text
            else:
                self._number = number
                self._rarer(event)
                opened, head, number, pieces = items.open, self._head, self._number, items.pieces
                continue
            if piece:
                pieces.append(piece)
                frames += (head, b'%d,"delta":' % number, _dumps(piece), b"}\n\n")
                number += 1
        self._number = number
        return self._written()

    def _write_runs(self, events: Sequence[Event]) -> None:
        """The same for so many that most stand behind their like."""
        for kind, group in groupby(events, type):
            if kind in _BELONGS:
                self._write_run(kind, [*group])
            else:
                for event in group:
                    self._rarer(event)

    def _write_run(self, kind: type[Event], run: list[Any]) -> None:
        belongs = _BELONGS[kind]
        logged = kind is TextDelta and any(map(_logprobs_of, run))
        for at, event in enumerate(run):
            if self._items.open in belongs and not logged:
                if pieces := _pieces_of(kind, run[at:]):
                    self._say_all(pieces)
                return
            self._rarer(event)

    def _say_all(self, pieces: list[str]) -> None:
        """Pieces of what is open."""
        head, count = self._head, len(pieces)
        parts: list[Any] = [0, _NAME, "", _NEXT] * count
        parts[::4] = range(self._number, self._number + count)
        parts[2::4] = pieces
        said = _dumps(parts)[1:-3].replace(b",\0,", b',"delta":')
        self._items.pieces += pieces
        self._frames += (head, said.replace(b",\1,", b"}\n\n" + head), b"}\n\n")
        self._number += count

    def _rarer(self, event: Event) -> None:
        if type(event) is Opened and self._number == 0:
            self._begin()
        self._items.add(event)
        if type(event) is Finish:
            how, response = finished(self._heading, self._items, event, self._told)
            self._object(how.word, response)
            self._items.listener = None  # what is over must not hold itself

    def _written(self) -> bytes:
        written = b"".join(self._frames)
        self._frames.clear()
        return written

    def event(self, kind: str, place: bytes, said: Json) -> None:
        head = _head(kind) % self._number
        self._frames += (head, place, _dumps(said)[1:], b"\n\n")
        self._number += 1

    def begin(self, kind: str, place: bytes) -> None:
        logged = b'"logprobs":[],' if kind == TEXT else b""
        self._head = b'%b%b%b"sequence_number":' % (_head_of_pieces(kind), place, logged)

    def delta(self, piece: str, logprobs: tuple[Json, ...]) -> None:
        head = self._head
        if logprobs:
            head = head.replace(b'"logprobs":[]', b'"logprobs":' + _dumps(logprobs))
        self._frames.append(b'%b%d,"delta":%b}\n\n' % (head, self._number, _dumps(piece)))
        self._number += 1

    def _begin(self) -> None:
        begun = self._heading.begun()
        self._frames += (_CREATED, *begun, _IN_PROGRESS, *begun, b"}\n\n")
        self._number = 2

    def _object(self, status: str, response: Parts) -> None:
        head = _head(f"response.{status}") % self._number
        self._frames += (head, b',"response":', *response, b"}\n\n")
        self._number += 1


def _pieces_of(kind: type[Event], run: list[Any]) -> list[str]:
    if kind is ToolCallDelta:
        said = [event.arguments for event in run]
    else:
        said = [event.text for event in run]
    return [*filter(None, said)]


def finished(
    heading: ResponseHeading, items: Items, finish: Finish, told: Json
) -> tuple[ResponseStatus, Parts]:
    """How an answer ended, and its whole object."""
    how = how_it_ended(finish.reason, items.refused)
    told = told | {"steps": items.steps} if items.steps else told
    return how, heading.finished(how, items.output, finish.usage, items.late, told)
