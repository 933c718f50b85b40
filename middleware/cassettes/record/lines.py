"""A turn as a part has it: a row of JSON, and the bodies as they were. Quick to write, as that
happens beside requests; it becomes what a cassette holds when the session ends.

A row has no names: to fetch each from memory costs more than to write what it names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, NamedTuple, TypeVar, cast

from adapters.protocol import (
    Event,
    Finish,
    FinishReason,
    Json,
    Opened,
    RequestContext,
    TextDelta,
    Upstream,
    Usage,
)
from adapters.wire.capture import CapturedCall, CapturedFailure, CapturedTool, Chunks
from middleware.cassettes.asks import Heard
from middleware.cassettes.cassette import RecordedAnswer
from middleware.cassettes.file.bodies import packed
from middleware.cassettes.names import CassetteName
from middleware.cassettes.record.adapter import RawTurn
from middleware.cassettes.record.turns import KEPT_HEADERS, told_of
from middleware.cassettes.selection import Selection
from middleware.cassettes.visitor import Operation, Visitor

_Row = TypeVar("_Row", bound=tuple[object, ...])
_Values = Sequence[Any]


class TurnRow(NamedTuple):
    """What stands in a row, in its order."""

    id: str
    at: int
    model: str
    session: str
    lane: str
    operation: Operation
    created: int
    path: str
    headers: Mapping[str, str]
    left: bool
    calls: Sequence[_Values]
    answer: Json | _Values
    """Of nearly every plain answer its `PlainRow`."""
    tools: Sequence[_Values]
    bodies: Sequence[bytes]
    """In the row their sizes: the client's two, all that were sent, all that were heard."""


class CallRow(NamedTuple):
    upstream: str
    url: str
    status: int
    headers: Sequence[str | None] | dict[str, str]
    """Of the answer, those of `KEPT_HEADERS`."""
    began: float
    chunks: list[Chunks] | None
    failure: _Values | None


class PlainRow(NamedTuple):
    status: int
    error: Json | None
    text: str
    logprobs: Sequence[Json]
    reason: FinishReason
    usage: _Values | None
    fingerprint: str | None
    tier: str | None


def write_lines(raw: RawTurn, at: int, out: list[bytes]) -> int:
    """Add what a turn's lines are made of; return of how many bytes they are."""
    # To take a tuple apart costs as much as to look for one member of it by name.
    visitor, captured, heard, status, error, left, _, tools, _, _ = raw
    name, selection, model, _, body, _, call, operation, created, path, own = visitor
    sent, calls, sizes = [body, own], [], []
    came: list[bytes] = []
    for one in captured:
        sent.append(one.body)
        came += *one.pieces, b"\n"
        sizes.append(sum(map(len, one.pieces)))
        failure = one.failure and tuple(one.failure)
        headers = [*map(one.answer_headers.get, KEPT_HEADERS)]
        calls.append((one.upstream, one.url, one.status, headers, one.began, one.chunks, failure))
    asked = call.id, at, model, name.session, selection.lane, operation, created, path
    used = [*map(tuple, tools)] if tools else ()
    sizes = [*map(len, sent), *sizes]
    answer = _plain(heard, status, error) or told_of(raw)
    row = packed((*asked, {**call.headers}, left, calls, answer, used, sizes))
    out += b"\n".join((row, *sent, b"")), *came
    return len(row) + 1 + sum(sizes) + len(sizes)


def _plain(heard: Heard | None, status: int, error: Json | None) -> _Values | None:
    """A `PlainRow`; None: it is no plain answer."""
    if type(heard) is tuple and len(heard) == 3:
        opened, text, finish = heard
        if type(opened) is Opened and type(text) is TextDelta and type(finish) is Finish:
            # To fold these costs as much as all the rest of the turn.
            upstream, used = opened.upstream, finish.usage
            said = status, error, text.text, text.logprobs, finish.reason
            return *said, used and _figures(used), upstream.fingerprint, upstream.tier
    return None


def _figures(usage: Usage) -> _Values:
    tokens = usage.prompt, usage.completion, usage.cached, usage.cache_write
    return *tokens, usage.reasoning, {**usage.extra}


def read_turn(said: Json | _Values, lines: IO[bytes]) -> TurnRow:
    """The turn of a row, with the bodies that stand behind it."""
    row = _row(TurnRow, said)
    return row._replace(bodies=[_body(lines, cast(int, size)) for size in row.bodies])


def _row(kind: Callable[..., _Row], said: Json | _Values) -> _Row:
    """Parts that were written before 2026-11-20 have names."""
    return kind(**said) if isinstance(said, dict) else kind(*said)


def _body(lines: IO[bytes], size: int) -> bytes:
    body = lines.read(size + 1)
    if len(body) <= size:
        raise EOFError
    return body[:-1]


def raw_of(row: TurnRow) -> RawTurn:
    """Undo `write_lines`, but for events that were folded by then."""
    call = RequestContext(row.id, headers=row.headers)
    name, selection = CassetteName("", row.session), Selection(lane=row.lane)
    body, own, *bodies = row.bodies
    asked = row.model, "record", body, "", call, row.operation, row.created
    visitor = Visitor(name, selection, *asked, row.path, own)
    count = len(row.calls)
    calls = [*map(_captured, row.calls, bodies[:count], bodies[count:])]
    tools = [_row(CapturedTool, told) for told in row.tools]
    raw = RawTurn(visitor, calls, left=row.left, tools=tools)
    if isinstance(row.answer, dict):
        return raw._replace(answer=RecordedAnswer(**row.answer))
    plain = PlainRow(*row.answer)
    return raw._replace(heard=_heard(plain), status=plain.status, error=plain.error)


def _heard(plain: PlainRow) -> tuple[Event, ...]:
    usage = Usage(*plain.usage) if plain.usage else None
    upstream = Upstream("recorded", fingerprint=plain.fingerprint, tier=plain.tier)
    text = TextDelta(plain.text, tuple(plain.logprobs))
    return Opened((), upstream), text, Finish(plain.reason, usage)


def _captured(said: Json | _Values, sent: bytes, heard: bytes) -> CapturedCall:
    row = _row(CallRow, said)
    call = CapturedCall(row.upstream, row.url, {}, (), None, sent, row.began)
    call.status, headers = row.status, row.headers
    if not isinstance(headers, dict):
        pairs = zip(KEPT_HEADERS, headers, strict=True)
        headers = {name: value for name, value in pairs if value is not None}
    call.answer_headers = headers
    call.pieces, call.chunks = [heard] if row.chunks else [], row.chunks
    call.failure = _row(CapturedFailure, row.failure) if row.failure else None
    return call
