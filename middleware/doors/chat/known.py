"""A request of which most was seen before: the rest alone is parsed and checked.

What is irregular in any way is left to `parse`, which reads it whole and says what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from adapters.errors import BadRequest
from adapters.protocol import TURN, Json
from adapters.shared.history import MOST_REWRITTEN, with_canonical_calls
from middleware.doors.body import MAX_VALUES
from middleware.doors.chat import legacy
from middleware.doors.chat.checks import require_distinct_names
from middleware.doors.chat.grammars import check_grammars
from middleware.doors.chat.messages import Message
from middleware.doors.chat.shapes import REQUEST, Tools
from middleware.doors.seen import Piece, Seen
from middleware.doors.skim import Skim

_MESSAGES, _TOOLS = b'"messages":', b'"tools":'
_MESSAGE: TypeAdapter[Any] = TypeAdapter(Message)
_ALL_TOOLS: TypeAdapter[Any] = TypeAdapter(Tools)
_ANY = [{"role": "user", "content": ""}]
# Stand for what was taken out. Whole numbers are written in one way alone: it is seen where another
# member says the same.
_THE_MESSAGES, _THE_TOOLS = 730_301_400_000_001, 730_301_400_000_002


class _Parts(NamedTuple):
    messages: list[Piece]
    tools: Piece | None
    rest: Piece


@dataclass(slots=True)
class Known:
    data: Json
    """The request, its calls in their one form."""
    settled: range
    """Messages that were settled before, as they are."""
    _first: int
    _parts: _Parts
    _skim: Skim

    def keep(self, settled: bool) -> None:
        """Remember the request; settled: as it came it needed no word."""
        self._skim.keep()
        if settled and self._first:
            self._skim.join(self._parts.messages, self._first)


def read_known(body: bytes, seen: Seen, owner: str) -> Known | None:
    """A valid request by what was seen of it; None: it has to be read whole."""
    skim = Skim(body, owner, seen)
    parts = None if len(body) < seen.least_body else _parts_of(skim)
    if parts is None or _is_much(body, parts):
        return None
    data: Json = {**parts.rest.value}
    if not _stands(_THE_MESSAGES, data["messages"], parts.rest):
        return None
    if parts.tools is None:
        if data.get("tools") == _THE_TOOLS:
            return None
    elif _stands(_THE_TOOLS, data.get("tools"), parts.rest):
        data["tools"] = parts.tools.value
    else:
        return None
    data["messages"], settled = _messages(parts.messages)
    return Known(data, settled, _first(parts.messages), parts, skim)


def _messages(pieces: list[Piece]) -> tuple[list[Json], range]:
    messages, settled = list[Json](), range(0)
    for piece in pieces:
        if piece.joined:
            settled = range(len(messages), len(messages) + len(piece.value))
            messages += piece.value
        else:
            messages.append(piece.value)
    return messages, settled


def _first(pieces: list[Piece]) -> int:
    """The first message of those that are remembered as one; 0: there are few.

    Many conversations begin alike, so what tells them apart stands before it. No result may be
    the first: its call would be outside.
    """
    for position in range(2, len(pieces)):
        piece = pieces[position]
        if piece.joined or piece.value["role"] != "tool":
            return position
    return 0


def _parts_of(skim: Skim) -> _Parts | None:
    """Tools stand before the messages, behind them or nowhere."""
    body, tools, rest = skim.body, None, b""
    at = skim.begin(_TOOLS, 0, body.find(_MESSAGES))
    first = at >= 0
    if first:
        tools = skim.array(at, _TOOLS, _are_tools)
        rest = body[:at] + b"%d" % _THE_TOOLS
    behind = skim.end
    at = skim.begin(_MESSAGES, behind)
    messages = skim.objects(at, _MESSAGES, _is_message) if at >= 0 else []
    if not messages or (first and tools is None):
        return None
    rest += body[behind:at] + b"%d" % _THE_MESSAGES
    behind = skim.end
    at = -1 if first else skim.begin(_TOOLS, behind)
    if at >= 0:
        tools = skim.array(at, _TOOLS, _are_tools)
        if tools is None:
            return None
        rest += body[behind:at] + b"%d" % _THE_TOOLS
    found = skim.text(rest + body[skim.end :], _is_rest)
    return None if found is None else _Parts(messages, tools, found)


def _stands(number: int, found: Any, rest: Piece) -> bool:
    """Whether what was taken out is what counts: it may stand deeper, or another one behind it."""
    return type(found) is int and found == number and rest.raw.count(b"%d" % number) == 1


def _is_much(body: bytes, parts: _Parts) -> bool:
    """Whether it may be too much; the words for it are found where a body is read whole."""
    if len(body) <= MAX_VALUES:
        return False
    if sum([piece.arguments for piece in parts.messages]) > MOST_REWRITTEN:
        return True
    pieces = [*parts.messages, parts.rest] + ([parts.tools] if parts.tools else [])
    # An array opens, and has a comma behind all but one.
    most = MAX_VALUES - len(parts.messages)
    return sum([piece.values() for piece in pieces]) > most and (
        sum([piece.values(exactly=True) for piece in pieces]) > most
    )


def _is_message(piece: Piece) -> bool:
    message = piece.value
    try:
        _MESSAGE.validator.validate_python(message)
    except ValidationError:
        return False
    # What is said of those says where they stand, and functions get ids by it.
    if TURN in message or message["role"] == "function" or message.get("function_call"):
        return False
    if message.get("tool_calls"):
        piece.value, room = with_canonical_calls(message)
        piece.arguments = MOST_REWRITTEN - room
    return True


def _are_tools(piece: Piece) -> bool:
    tools = piece.value
    try:
        _ALL_TOOLS.validator.validate_python(tools)
        require_distinct_names(tools)
        check_grammars({"tools": tools})
    except (ValidationError, BadRequest):
        return False
    piece.value = tuple(tools)
    return True


def _is_rest(piece: Piece) -> bool:
    rest = piece.value
    if not isinstance(rest, dict) or "messages" not in rest:
        return False
    data = {**rest, "messages": _ANY}
    if data.get("tools") == _THE_TOOLS:
        del data["tools"]
    try:
        REQUEST.validator.validate_python(data)
        check_grammars(data)
    except (ValidationError, BadRequest):
        return False
    return not legacy.is_used(data)
