"""A request of which most was seen before: the rest alone is parsed and checked.

What is irregular in any way is left to the door, which reads it whole and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import orjson
from pydantic import TypeAdapter, ValidationError

from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.shared.history import MOST_REWRITTEN
from middleware.doors.body import MAX_VALUES
from middleware.doors.seen import Piece, Seen
from middleware.doors.skim import Check, Skim

# Stand for what was taken out. Whole numbers are written in one way alone: it is seen where another
# member says the same.
_THE_ITEMS, _THE_TOOLS = 730_301_400_000_001, 730_301_400_000_002


@dataclass(frozen=True, slots=True)
class Form:
    """What the bodies of a door are made of."""

    door: str
    items: str
    """The member that has the conversation."""
    item: Check
    """Of one of it makes the messages it becomes."""
    tools: Check
    body: TypeAdapter[Any]
    stand_in: Any
    """A conversation, for when all else is validated."""
    rest: Callable[[Json, Json], Any]
    """Reads all else, which is valid: with whole numbers where items and tools stood, and nowhere
    else; and as it was validated. None: it is to be read whole.
    """


class _Rest(NamedTuple):
    said: Any
    with_tools: bool
    """They were taken out of it."""


class _Parts(NamedTuple):
    items: list[Piece]
    tools: Piece | None
    rest: Piece


@dataclass(slots=True)
class RecognizedRequest:
    rest: Any
    tools: Any
    """None: it has none."""
    messages: list[Json]
    """Their calls are in their one form."""
    settled: range
    """Those that were settled before, as they are."""
    weight: int
    """Of all items."""
    _parts: _Parts
    _skim: Skim

    def text(self, text: str, read: Callable[[str], Any]) -> Any:
        """What was made of a text of the rest."""

        def check(piece: Piece) -> bool:
            piece.value = read(piece.value)
            return True

        piece = self._skim.text(orjson.dumps(text), check)
        return read(text) if piece is None else piece.value

    def keep(self, settled: bool) -> None:
        """Remember the request; settled: as it came it needed no word."""
        self._skim.keep()
        if settled and (first := _first(self._parts.items)):
            self._skim.join(self._parts.items, first)


def recognize(body: bytes, seen: Seen | None, owner: str, form: Form) -> RecognizedRequest | None:
    """A valid request by what was seen of it; None: it has to be read whole."""
    if seen is None or len(body) < seen.least_body:
        return None
    skim = Skim(body, f"{form.door} {owner}", seen)
    parts = _parts_of(skim, form)
    if parts is None or _is_much(body, parts):
        return None
    messages, settled = _messages(parts.items)
    tools = parts.tools.value if parts.tools else None
    weight = sum([piece.weight for piece in parts.items])
    return RecognizedRequest(parts.rest.value.said, tools, messages, settled, weight, parts, skim)


def _messages(pieces: list[Piece]) -> tuple[list[Json], range]:
    messages, settled = list[Json](), range(0)
    for piece in pieces:
        if piece.joined:
            settled = range(len(messages), len(messages) + len(piece.value))
        messages += piece.value
    return messages, settled


def _first(pieces: list[Piece]) -> int:
    """The first item of those that are remembered as one; 0: there are few.

    Many conversations begin alike, so what tells them apart stands before it. No result may be
    the first: its call would be outside.
    """
    for position in range(2, len(pieces)):
        piece = pieces[position]
        if piece.joined or piece.value[0].get("role") != "tool":
            return position
    return 0


def _parts_of(skim: Skim, form: Form) -> _Parts | None:
    """Tools stand before the items, behind them or nowhere."""
    items, tools, rest, done = list[Piece](), list[Piece](), b"", 0
    end: int | None = skim.body.find(b'"%b":' % form.items.encode())
    for name in ("tools", form.items, "tools"):
        at = -1 if name == "tools" and tools else skim.begin(name, done, end)
        end = None
        if at < 0:
            continue
        if name == "tools":
            found = tools = skim.array(at, name, form.tools)
        else:
            found = items = skim.objects(at, name, form.item)
        if not found:
            return None
        rest += skim.body[done:at] + b"%d" % (_THE_TOOLS if found is tools else _THE_ITEMS)
        done = skim.end
    others = skim.text(rest + skim.body[done:], partial(_is_rest, form)) if items else None
    if others is None or others.value.with_tools is not bool(tools):
        return None
    return _Parts(items, tools[0] if tools else None, others)


def _is_rest(form: Form, piece: Piece) -> bool:
    """Whether what was taken out is what counts: it may stand deeper, or another one behind it."""
    data = piece.value
    if not isinstance(data, dict) or not _stands(_THE_ITEMS, data.get(form.items), piece):
        return False
    tools = data.get("tools")
    with_tools = type(tools) is int
    # Some that nobody took out, as they are written oddly, nobody has read.
    if (with_tools or tools) and not _stands(_THE_TOOLS, tools, piece):
        return False
    checked = {**data, form.items: form.stand_in}
    if with_tools:
        del checked["tools"]
    try:
        form.body.validator.validate_python(checked)
        said = form.rest(data, checked)
    except (ValidationError, BadRequest):
        return False
    piece.value = _Rest(said, with_tools)
    return said is not None


def _stands(number: int, found: Any, rest: Piece) -> bool:
    return type(found) is int and found == number and rest.raw.count(b"%d" % number) == 1


def _is_much(body: bytes, parts: _Parts) -> bool:
    """Whether it may be too much; the words for it are found where a body is read whole."""
    if len(body) <= MAX_VALUES:
        return False
    if sum([piece.arguments for piece in parts.items]) > MOST_REWRITTEN:
        return True
    pieces = [*parts.items, parts.rest] + ([parts.tools] if parts.tools else [])
    # An array opens, and has a comma behind all but one.
    most = MAX_VALUES - len(parts.items)
    return sum([piece.values() for piece in pieces]) > most and (
        sum([piece.values(exactly=True) for piece in pieces]) > most
    )
