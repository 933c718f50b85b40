"""What happened → a turn, without addresses, and with the secrets still in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from urllib.parse import urlsplit

from adapters.protocol import Json
from adapters.wire.capture import CapturedCall
from middleware.cassettes.asks import body_of, told_in
from middleware.cassettes.cassette import (
    CassetteTurn,
    Ended,
    ExchangeFailure,
    RecordedAnswer,
    RecordedExchange,
)
from middleware.cassettes.record.adapter import RawTurn

KEPT_HEADERS = ("content-type", "retry-after")
"""Of an upstream's answer; the others are volatile, or name an account."""
_STEP = 10
"""Milliseconds to which times are rounded, so that a recording does not change for nothing."""


def turn_of(raw: RawTurn, keeps_retries: bool = False) -> CassetteTurn:
    """One turn; its number and place are for the file to give."""
    visitor = raw.visitor
    calls = raw.calls if keeps_retries else _unrepaired(raw.calls)
    last = len(calls) - 1
    exchanges = tuple(
        _exchange(call, raw.left and position == last) for position, call in enumerate(calls)
    )
    return CassetteTurn(
        number=0,
        body=body_of(visitor.body),
        answer=answer_of(raw),
        headers=visitor.call.headers,
        path=visitor.path,
        own=body_of(visitor.own) if visitor.own else {},
        id=visitor.call.id,
        operation=visitor.operation,
        exchanges=exchanges,
        tools=tuple(raw.tools),
        ended=_ended(raw, exchanges),
        session=visitor.name.session,
        lane=visitor.selection.lane,
    )


def _unrepaired(calls: Sequence[CapturedCall]) -> list[CapturedCall]:
    """Without failures that asking again repaired."""
    return [
        call
        for position, call in enumerate(calls)
        if is_good(call) or not any(_repairs(later, call) for later in calls[position + 1 :])
    ]


def is_good(call: CapturedCall) -> bool:
    return call.failure is None and 200 <= call.status < 300


def _repairs(later: CapturedCall, call: CapturedCall) -> bool:
    return later.upstream == call.upstream and later.body == call.body and is_good(later)


def _exchange(call: CapturedCall, left: bool) -> RecordedExchange:
    kept, failure = kept_headers(call), call.failure
    if failure is not None:  # Claude sends the header with whole answers too: no failure's
        kept.pop("retry-after", None)
        if failure.retry_after:
            kept["retry-after"] = failure.retry_after
    return RecordedExchange(
        upstream=call.upstream,
        path=f"/{urlsplit(call.url).path.removeprefix('/')}",  # libraries' have none: local:NAME
        sent=call.body,
        status=call.status or (200 if call.pieces else 0),
        headers=kept,
        body=b"".join(call.pieces),
        pieces=_pieces(call),
        ended=_end_of(call, left),
        failure=failure
        and ExchangeFailure(failure.code, failure.status, failure.again, failure.message),
    )


def kept_headers(call: CapturedCall) -> dict[str, str]:
    headers = call.answer_headers  # of which names may be written in any case
    kept = {}
    for name in KEPT_HEADERS:
        if name in headers:
            kept[name] = headers[name]
    return kept


def _pieces(call: CapturedCall) -> tuple[tuple[int, int], ...]:
    """Of each the time since the one before, made of rounded times: errors do not add up."""
    chunks = call.chunks or [(call.began, [*map(len, call.pieces)])]
    heard = [(time - call.began, size) for time, sizes in chunks for size in sizes if size]
    times = [round(time * 1000 / _STEP) * _STEP for time, _ in heard]
    pauses = [later - before for before, later in pairwise([0, *times])]
    return tuple(zip(pauses, (size for _, size in heard), strict=True))


def _end_of(call: CapturedCall, left: bool) -> Ended:
    if call.failure is not None:
        if call.failure.code == "upstream_timeout":
            return "timeout"
        return "cut" if call.pieces else "reset"
    return "left" if left else "whole"


def _ended(raw: RawTurn, exchanges: Sequence[RecordedExchange]) -> Ended:
    if raw.left:
        return "left"
    broken = exchanges and exchanges[-1].ended
    failed = answer_of(raw).error is not None
    return broken if broken and failed else "whole"


def answer_of(raw: RawTurn) -> RecordedAnswer:
    """What the client was told."""
    return raw.answer or RecordedAnswer(**told_of(raw))


def told_of(raw: RawTurn) -> Json:
    """The same, where it happened now, by its members; one that is not there has its default."""
    created = raw.visitor.created if raw.body is None else None
    if raw.heard is not None:
        return told_in(raw.heard, created, raw.status, raw.error)
    return {"status": raw.status, "error": raw.error, "body": raw.body, "created": created}
