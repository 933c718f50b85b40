"""A request of which most was seen before: the rest alone is parsed and checked.

What is irregular in any way is left to `parse`, which reads it whole and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import ValidationError

from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.shared.history import MOST_REWRITTEN, with_canonical_calls
from middleware.doors.body import MAX_VALUES
from middleware.doors.chat import legacy
from middleware.doors.chat.checks import require_distinct_names
from middleware.doors.chat.grammars import check_grammars
from middleware.doors.chat.shapes import REQUEST
from middleware.doors.seen import Piece, Seen
from middleware.doors.skim import Check, Skim

_ANY: Mapping[str, str] = {"role": "user", "content": ""}
# Stand for what was taken out. Whole numbers are written in one way alone: it is seen where another
# member says the same.
_NUMBERS: Mapping[str, int] = {"messages": 730_301_400_000_001, "tools": 730_301_400_000_002}


class _Parts(NamedTuple):
    arrays: Mapping[str, Sequence[Piece]]
    """Messages, each or several joined, and tools, all as one."""
    rest: Piece


@dataclass(slots=True)
class RecognizedChat:
    data: Json
    """The request, its calls in their one form."""
    settled: range
    """Messages that were settled before, as they are."""
    _messages: Sequence[Piece]
    _skim: Skim

    def keep(self, settled: bool) -> None:
        """Remember the request; settled: as it came it needed no word."""
        self._skim.keep()
        if settled and (first := _first_joined(self._messages)):
            self._skim.join(self._messages, first)


def recognize(body: bytes, seen: Seen, owner: str) -> RecognizedChat | None:
    """A valid request by what was seen of it; None: it has to be read whole."""
    skim = Skim(body, owner, seen)
    parts = None if len(body) < seen.least_body else _parts_of(skim)
    if parts is None or _is_much(body, parts):
        return None
    data: Json = {**parts.rest.value}
    for name, number in _NUMBERS.items():
        taken = data.get(name) == number
        if taken != (name in parts.arrays) or (taken and not _counts(name, parts.rest)):
            return None
    messages = parts.arrays["messages"]
    data["messages"], settled = _values(messages)
    if "tools" in parts.arrays:
        data["tools"] = parts.arrays["tools"][0].value
    return RecognizedChat(data, settled, messages, skim)


def _values(pieces: Sequence[Piece]) -> tuple[list[Json], range]:
    values, settled = list[Json](), range(0)
    for piece in pieces:
        if piece.joined:
            settled = range(len(values), len(values) + len(piece.value))
            values += piece.value
        else:
            values.append(piece.value)
    return values, settled


def _first_joined(messages: Sequence[Piece]) -> int:
    """The first of those that are remembered as one; 0: there are few.

    Many conversations begin alike, so what tells them apart stands before it. It is no result, as
    the call would be outside.
    """
    for position in range(2, len(messages)):
        piece = messages[position]
        if piece.joined or piece.value["role"] != "tool":
            return position
    return 0


def _parts_of(skim: Skim) -> _Parts | None:
    """Tools stand before the messages, behind them or nowhere."""
    arrays, rest, done = dict[str, Sequence[Piece]](), b"", 0
    end: int | None = skim.body.find(b'"messages":')
    for name in ("tools", "messages", "tools"):
        at = -1 if name in arrays else skim.begin(name, done, end)
        end = None
        if at < 0:
            continue
        read = skim.objects if name == "messages" else skim.array
        arrays[name] = read(at, name, _CHECKS[name])
        if not arrays[name]:
            return None
        rest += skim.body[done:at] + b"%d" % _NUMBERS[name]
        done = skim.end
    found = skim.text(rest + skim.body[done:], _is_rest) if "messages" in arrays else None
    return None if found is None else _Parts(arrays, found)


def _counts(name: str, rest: Piece) -> bool:
    """Whether it is what was taken out: that may stand deeper, or another behind it."""
    number = _NUMBERS[name]
    return type(rest.value[name]) is int and rest.raw.count(b"%d" % number) == 1


def _is_much(body: bytes, parts: _Parts) -> bool:
    """Whether it may be too much; the words for it are found where a body is read whole."""
    if len(body) <= MAX_VALUES:
        return False
    messages = parts.arrays["messages"]
    if sum([piece.arguments for piece in messages]) > MOST_REWRITTEN:
        return True
    pieces = [*messages, *parts.arrays.get("tools", ()), parts.rest]
    # An array opens, and has a comma behind all but one.
    most = MAX_VALUES - len(messages)
    return sum([piece.values() for piece in pieces]) > most and (
        sum([piece.values(exactly=True) for piece in pieces]) > most
    )


def _is_message(piece: Piece) -> bool:
    message = piece.value
    if not _is_valid({"model": "m", "messages": [message]}):
        return False
    if message["role"] == "function" or message.get("function_call"):
        return False  # their ids say where they stand
    if message.get("tool_calls"):
        piece.value, room = with_canonical_calls(message)
        piece.arguments = MOST_REWRITTEN - room
    return True


def _are_tools(piece: Piece) -> bool:
    tools = piece.value
    piece.value = tuple(tools)
    return _is_valid({"model": "m", "messages": [_ANY], "tools": tools})


def _is_rest(piece: Piece) -> bool:
    rest = piece.value
    if not isinstance(rest, dict) or "messages" not in rest:
        return False
    data = {**rest, "messages": [_ANY]}
    if data.get("tools") == _NUMBERS["tools"]:
        del data["tools"]
    return _is_valid(data) and not legacy.is_used(data)


def _is_valid(data: Json) -> bool:
    try:
        REQUEST.validator.validate_python(data)
        if data.get("tools"):
            require_distinct_names(data["tools"])
        check_grammars(data)
    except (ValidationError, BadRequest):
        return False
    return True


_CHECKS: Mapping[str, Check] = {"messages": _is_message, "tools": _are_tools}
