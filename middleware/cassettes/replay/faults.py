"""Faults by hand: what an upstream does wrong in replay, whatever was recorded.

Rules stand in a file beside the cassette, or one of them in a header. The first that fits an ask
changes the exchanges it is answered from, so that the client sees what the gateway makes of them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, islice
from typing import Any, get_args

from adapters.protocol import FinishReason, Json
from adapters.wire.failures import broke_off
from adapters.wire.framing import BYTE_ORDER_MARK
from middleware.cassettes.cassette import ExchangeFailure, RecordedExchange
from middleware.cassettes.schema import fitting


class FaultMistake(Exception):
    """A rule that cannot be meant; says where, and what can be."""

    def __init__(self, where: str, text: str) -> None:
        super().__init__(f"{where}: {text}")


@dataclass(frozen=True, slots=True)
class FaultRule:
    """One fault, and the asks it is for: one turn, those of a model, or all."""

    where: str
    """Its place, for people; no two rules of a file have the same."""
    kind: str
    says: Mapping[str, Any] = field(hash=False)
    """All its keys, those of the objects inside too."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What an ask is answered from instead, and what becomes of the answer."""

    exchanges: tuple[RecordedExchange, ...]
    door_cut: int | None = None
    """The client's connection is reset behind so many pieces of the last exchange: its end."""
    finish: FinishReason | None = None
    """The reason that the answer's end gives instead."""
    refuse: bool = False
    """The answer is a refusal."""
    first: bool = False
    """If the client hears of the fault, the same ask once more gets this turn without it."""
    real: bool = False


def find_fault(
    rules: Sequence[FaultRule], turn: int, model: str, nth: int, fired: Collection[FaultRule] = ()
) -> FaultRule | None:
    """The rule for this turn, by which the nth ask of a model is answered."""
    asked = {"turn": turn, "model": model, "nth": nth}
    for rule in rules:
        fits = all(rule.says.get(name, value) == value for name, value in asked.items())
        if fits and not (rule.kind == "first" and rule in fired):
            return rule
    return None


def _keys(*needed: str, **known: Mapping[str, Any]) -> Mapping[str, Any]:
    names = {"properties": known, "additionalProperties": False, "required": [*needed]}
    return {"type": "object", **names}


_MOST = 1_000_000
_COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 0, "maximum": _MOST}
_FROM_ONE: Mapping[str, Any] = {"type": "integer", "minimum": 1}
_NUMBER: Mapping[str, Any] = {"type": "number", "exclusiveMinimum": 0, "maximum": _MOST}
_STATUS: Mapping[str, Any] = {"type": "integer", "minimum": 400, "maximum": 599}
_TEXT: Mapping[str, Any] = {"type": "string", "pattern": r"^[ -~]*\Z"}
_HEADERS: Mapping[str, Any] = {"type": "object", "additionalProperties": _TEXT}
_PLACES: Mapping[str, Any] = {"after_event": _COUNT, "after_piece": _COUNT}
_FAULTS: Mapping[str, Any] = {
    "cut": _keys(**_PLACES, at={"const": "door"}),
    "stall": _keys("seconds", **_PLACES, seconds=_NUMBER, real={"type": "boolean"}),
    "first": _keys("status", status=_STATUS, headers=_HEADERS),
    "status": _STATUS,
    **{name: {"const": True} for name in ("garbage", "empty", "refuse")},
    "slow": _NUMBER,
    "finish": {"enum": [*get_args(FinishReason)]},
}
_MODEL = _keys("model", model={"type": "string", "minLength": 1})
_ASKS: Mapping[str, Any] = {"turn": _FROM_ONE, "match": _MODEL, "nth": _FROM_ONE}
_HELP = (
    "A rule is such as {turn: 2, cut: {after_event: 7}} or {match: {model: gpt}, status: 500}; in "
    f"a header it has no turn or match. There are {', '.join(_FAULTS)}."
)


def read_faults(value: Any, where: str) -> tuple[FaultRule, ...]:
    """Rules from the list of a file, or from the one object of a header."""
    if isinstance(value, dict):
        return (_rule(value, where, {}),)
    if value is not None and not isinstance(value, list):
        raise FaultMistake(where, f"expected a list of rules. {_HELP}")
    return tuple(_rule(one, f"{where}, rule {at}", _ASKS) for at, one in enumerate(value or (), 1))


def _rule(value: Any, where: str, asks: Mapping[str, Any]) -> FaultRule:
    try:
        said = fitting(value, _keys(**asks, **_FAULTS, headers=_HEADERS))
        kind = _only(said, _FAULTS)
        if asks:
            _only(said, ("turn", "match"))
        if kind in ("cut", "stall"):
            _only(said[kind], _PLACES)
    except ValueError as error:
        raise FaultMistake(where, f"{error}. {_HELP}") from None
    inside = said[kind] if isinstance(said[kind], dict) else {}
    return FaultRule(where, kind, {**said, **said.get("match", {}), **inside})


def _only(said: Json, names: Iterable[str]) -> str:
    found = [name for name in names if name in said]
    if len(found) != 1:
        raise ValueError(f"say one of {', '.join(names)}")
    return found[0]


# A line's end of any kind, twice: the first may not give back half of a CRLF.
_BLANK_LINE = re.compile(rb"(?>\r\n|\r|\n)(?>\r\n|\r|\n)")
_LINE_END = re.compile(rb"\n")
_DATA = re.compile(rb"(?:\A(?:\xef\xbb\xbf)?|[\r\n])data:")
_NO_JSON = b'{"this": is no JSON'
_ERROR = b'{"error": {"message": "A fault rule says so.", "type": "fault", "code": null}}'
_NOTHING = (RecordedExchange("", "", b""),)
Pieces = tuple[tuple[int, int], ...]


def applied(rule: FaultRule, exchanges: tuple[RecordedExchange, ...]) -> Applied | None:
    """What a turn is answered from; None: it has nothing that the rule could act on.

    The last exchange is the one whose answer the client hears.
    """
    says = rule.says
    if rule.kind in ("finish", "refuse"):
        return Applied(exchanges, finish=says.get("finish"), refuse=rule.kind == "refuse")
    if rule.kind == "first":
        return Applied((_failed(rule, (exchanges or _NOTHING)[0]), *exchanges), first=True)
    last = _ACTS[rule.kind](rule, (exchanges or _NOTHING)[-1])
    if last is None:
        return None
    door_cut = len(last.pieces) if "at" in says else None
    return Applied((*exchanges[:-1], last), door_cut=door_cut, real=says.get("real", False))


def _failed(rule: FaultRule, exchange: RecordedExchange) -> RecordedExchange:
    headers = {name.lower(): text for name, text in rule.says.get("headers", {}).items()}
    headers["content-type"] = "application/json"
    return replace(_answering(exchange, _ERROR), status=rule.says["status"], headers=headers)


def _garbage(_: FaultRule, exchange: RecordedExchange) -> RecordedExchange:
    lines = _in_lines(exchange.body)
    return _answering(exchange, _NO_JSON + b"\n" if lines else b"data: " + _NO_JSON + b"\n\n")


def _answering(exchange: RecordedExchange, body: bytes) -> RecordedExchange:
    pieces = ((0, len(body)),) if body else ()
    return replace(exchange, status=200, body=body, pieces=pieces, ended="whole", failure=None)


def _cut(rule: FaultRule, exchange: RecordedExchange) -> RecordedExchange | None:
    stop = _stop(rule, exchange)
    if stop is None:
        return None
    heard, _ = _parted(exchange, stop)
    error = broke_off(exchange.upstream, ConnectionError())
    failure = ExchangeFailure(error.code or "", error.status, error.again, error.message)
    body = exchange.body[:stop]
    return replace(exchange, body=body, pieces=heard, ended="cut", failure=failure)


def _stall(rule: FaultRule, exchange: RecordedExchange) -> RecordedExchange | None:
    stop = _stop(rule, exchange)
    if stop is None or stop == len(exchange.body):
        return None
    heard, ((gap, size), *rest) = _parted(exchange, stop)
    late = (gap + round(rule.says["seconds"] * 1000), size)
    return replace(exchange, pieces=(*heard, late, *rest))


def _slow(rule: FaultRule, exchange: RecordedExchange) -> RecordedExchange | None:
    slower = tuple((round(gap * rule.says["slow"]), size) for gap, size in exchange.pieces)
    return replace(exchange, pieces=slower) if slower else None


_ACTS: Mapping[str, Callable[[FaultRule, RecordedExchange], RecordedExchange | None]] = {
    "cut": _cut,
    "stall": _stall,
    "slow": _slow,
    "status": _failed,
    "garbage": _garbage,
    "empty": lambda _, exchange: _answering(exchange, b""),
}


def _stop(rule: FaultRule, exchange: RecordedExchange) -> int | None:
    """Behind which byte the rule acts; None: the answer has not so many events or pieces."""
    after = rule.says.get("after_event", rule.says.get("after_piece"))
    if not after:
        return 0 if exchange.body else None
    ends = _event_ends(exchange.body)
    if "after_piece" in rule.says:
        ends = accumulate(size for _, size in _pieces(exchange))
    return next(islice(ends, after - 1, None), None)


def _event_ends(body: bytes) -> Iterator[int]:
    """Where the events end: lines that say something, or blocks of SSE that have data."""
    lines, begin = _in_lines(body), 0
    for found in chain((_LINE_END if lines else _BLANK_LINE).finditer(body), (None,)):
        end = found.end() if found else len(body)
        block = body[begin:end]
        if block.strip() if lines else _DATA.search(block):
            yield end
        begin = end


def _in_lines(body: bytes) -> bool:
    """Whether it is JSON, of one answer or one a line."""
    return body.removeprefix(BYTE_ORDER_MARK).lstrip()[:1] == b"{"


def _pieces(exchange: RecordedExchange) -> Pieces:
    return exchange.pieces or ((0, len(exchange.body)),)


def _parted(exchange: RecordedExchange, stop: int) -> tuple[Pieces, Pieces]:
    """The pieces before a byte and those behind it; one that has it within becomes two."""
    pieces = _pieces(exchange)
    ends = [*accumulate(size for _, size in pieces)]
    whole = bisect_right(ends, stop)
    heard = stop - (ends[whole - 1] if whole else 0)
    if not heard:
        return pieces[:whole], pieces[whole:]
    gap, size = pieces[whole]
    return (*pieces[:whole], (gap, heard)), ((0, size - heard), *pieces[whole + 1 :])
