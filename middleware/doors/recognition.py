"""A request of which most was seen before: the rest alone is parsed and checked.

What is irregular in any way is left to the door, which reads it whole and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, Protocol, Self

import orjson
from pydantic import TypeAdapter, ValidationError

from adapters.errors import BadRequest
from adapters.protocol import Json, value_class
from adapters.receipts import Notes, Receipt
from adapters.shared.beginnings import writer_of
from adapters.shared.cache import fitted
from adapters.shared.history import ARE_CANONICAL, MOST_REWRITTEN, settle
from middleware.doors.body import MAX_VALUES
from middleware.doors.seen import Piece, Seen, size_of
from middleware.doors.skim import ArrayMember, Check, Skim

# Stand for what was taken out. Whole numbers are written in one way alone: it is seen where another
# member says the same.
_THE_ITEMS, _THE_TOOLS = b"730301400000001", b"730301400000002"
_TOOLS = ArrayMember("tools")
_NEAR = 1 << 10
"""Bytes of the beginning: what stands before both of conversation and tools is mostly short."""


_raw = attrgetter("raw")
_SYSTEM = frozenset(("system", "developer"))


Remember = Callable[[str, Callable[[str], Any]], Any]
"""What was made of a text before, as the same object, or what is made of it now."""


@dataclass(frozen=True, slots=True)
class Form:
    """What the bodies of a door are made of."""

    door: str
    items: ArrayMember
    """That has the conversation."""
    item: Check
    """Of one of it makes the messages it becomes."""
    tools: Check
    body: TypeAdapter[Any]
    stand_in: Any
    """A conversation, for when all else is validated."""
    rest: Callable[[Json, Json, Remember], Any]
    """Reads all else, which is valid: with whole numbers where items and tools stood, and nowhere
    else; and as it was validated. None: it is to be read whole.
    """


@value_class
class _Rest:
    said: Any
    with_tools: bool
    """They were taken out of it."""


_Parts = tuple[list[Piece], Piece | None, Piece]
"""The items, the tools if it has any, and the rest."""


@dataclass(slots=True)
class RecognizedRequest:
    rest: Any
    tools: Any
    """None: it has none."""
    messages: list[Json]
    """Their calls are in their one form."""
    settled: range
    """Those that were settled before, as they are."""
    _items: list[Piece]
    _skim: Skim

    def weight(self) -> int:
        """Of all items."""
        return sum([piece.weight for piece in self._items])

    def raw_items(self) -> list[bytes]:
        """As the client said them; where several are remembered as one, with commas between."""
        return [*map(_raw, self._items)]

    def keep(self, settled: bool, joined: bool = False) -> None:
        """Remember the request; settled: as it came it needed no word. Joined: what is no
        conversation as it came is remembered as one piece all the same.
        """
        self._skim.keep()
        if (settled or joined) and len(self._items) > 2 and (first := _first(self._items)):
            self._skim.join(self._items, first, settled)
        self._skim.body = b""  # nobody looks at it again, and an answer may take long


class TurnReader(Protocol):
    """Makes messages of what clients say in another way, one item after the other."""

    notes: Notes
    regular: bool
    """Its messages are in the one form of a conversation; told once all are finished."""

    def add(self, item: Json, /) -> None: ...

    def copy(self) -> Self: ...

    def finish(self) -> list[Json]:
        """All messages, once all items were added; their calls are in their one form."""


def settle_items(
    items: Sequence[Json],
    begin: Callable[[], TurnReader],
    context: Hashable,
    repair: bool,
    before: tuple[Json, ...] = (),
) -> tuple[tuple[Json, ...], Receipt, Receipt]:
    """Read items that come again as the same objects, and settle the messages they become; with
    what is to be told of both.

    `context`: all that `begin` makes its reader of; `before`: messages that stand before those.
    """
    reader = writer_of(items, begin, context)
    messages, receipt = (*before, *reader.finish()), reader.notes.receipt()
    if reader.regular:
        return messages, receipt, ()
    settled, changed = settle(messages, repair, ARE_CANONICAL)
    return settled, receipt, changed


def settled_alone(known: RecognizedRequest, repair: bool) -> tuple[Json, ...] | None:
    """The conversation where each item is a turn of its own, in its one form; None: some are turns
    together, or something is to be told.
    """
    messages, done = known.messages, known.settled
    if not _are_turns(messages[: done.start + 1] if done else messages):
        return None
    if done and not _are_turns(messages[done.stop - 1 :]):
        return None
    try:
        settled, changed = settle(messages, repair, done)
    except BadRequest:  # whoever reads them as items has words for it
        return None
    return None if changed else settled


def _are_turns(messages: Sequence[Json]) -> bool:
    """Whether no two of them are one turn of the assistant; what is no message is part of one."""
    before = ""
    for message in messages:
        role = message.get("role")
        if role is None or role == before == "assistant":
            return False
        before = role
    return True


def recognize(body: bytes, seen: Seen | None, owner: str, form: Form) -> RecognizedRequest | None:
    """A valid request by what was seen of it; None: it has to be read whole."""
    if seen is None or len(body) < seen.least_body:
        return None
    skim = Skim(body, f"{form.door} {owner}", seen)
    parts = _parts_of(skim, form)
    if parts is None or (len(body) > MAX_VALUES and _are_much(parts)):
        return None
    items, tools, rest = parts
    messages, settled = _messages(items)
    said_tools = None if tools is None else tools.value
    return RecognizedRequest(rest.value.said, said_tools, messages, settled, items, skim)


def _messages(pieces: list[Piece]) -> tuple[list[Json], range]:
    messages: list[Json] = []
    settled = range(0)
    for piece in pieces:
        if piece.settled:
            settled = range(len(messages), len(messages) + len(piece.value))
        messages += piece.value
    return messages, settled


def _first(pieces: list[Piece]) -> int:
    """The first item of those that are remembered as one; 0: there are few.

    Many conversations begin alike, so what tells them apart stands before it: what the system says,
    and what is said first. No result may be the first: its call would be outside.
    """
    begun = False
    for position, piece in enumerate(pieces):
        role = piece.value[0].get("role")
        if begun and (piece.joined or role != "tool"):
            return position
        begun = begun or role not in _SYSTEM
    return 0


def _parts_of(skim: Skim, form: Form) -> _Parts | None:
    """Tools stand before the items, behind them or nowhere."""
    body = skim.body
    items: list[Piece] = []
    tools: Piece | None = None
    rest, done = b"", 0
    for member in _in_order(form.items, body):
        at = member.begins(body, done)
        if at < 0:
            continue
        if member is _TOOLS:
            tools = skim.array(at, member.name, form.tools)
            if tools is None:
                return None
            rest += body[done:at] + _THE_TOOLS
        else:
            items = skim.objects(at, member.name, form.item)
            if not items:
                return None
            rest += body[done:at] + _THE_ITEMS
        done = skim.end
    if not items:
        return None
    rest += body[done:]
    others = skim.known(rest) or skim.text(rest, partial(_is_rest, form, partial(_made_of, skim)))
    if others is None or others.value.with_tools is (tools is None):
        return None
    return items, tools, others


def _in_order(items: ArrayMember, body: bytes) -> tuple[ArrayMember, ArrayMember]:
    """Members by where they stand; the beginning tells it mostly, and each of them may be long."""
    for end in (_NEAR, len(body)):
        at = body.find(_TOOLS.mark, 0, end)
        if body.find(items.mark, 0, end if at < 0 else at) >= 0:
            return items, _TOOLS
        if at >= 0:
            return _TOOLS, items
    return items, _TOOLS


def _made_of(skim: Skim, text: str, make: Callable[[str], Any]) -> Any:
    def check(piece: Piece) -> bool:
        piece.value = make(piece.value)
        return True

    piece = skim.text(fitted(orjson.dumps(text)), check)
    return make(text) if piece is None else piece.value


def _is_rest(form: Form, remember: Remember, piece: Piece) -> bool:
    """Whether what was taken out is what counts: it may stand deeper, or another one behind it."""
    data = piece.value
    if not isinstance(data, dict) or not _stands(_THE_ITEMS, data.get(form.items.name), piece):
        return False
    tools = data.get("tools")
    with_tools = type(tools) is int
    # Some that nobody took out, as they are written oddly, nobody has read.
    if (with_tools or tools) and not _stands(_THE_TOOLS, tools, piece):
        return False
    checked = {**data, form.items.name: form.stand_in}
    if with_tools:
        del checked["tools"]
    try:
        form.body.validator.validate_python(checked)
        said = form.rest(data, checked, remember)
    except (ValidationError, BadRequest):
        return False
    piece.value = _Rest(said, with_tools)
    piece.size = 3 * size_of(piece.raw)  # beside the text stands what was made of it
    return said is not None


def _stands(number: bytes, found: Any, rest: Piece) -> bool:
    return type(found) is int and found == int(number) and rest.raw.count(number) == 1


def _are_much(parts: _Parts) -> bool:
    """Whether they may be too much; the words for it are found where a body is read whole."""
    items, tools, rest = parts
    if sum([piece.arguments for piece in items]) > MOST_REWRITTEN:
        return True
    pieces = [*items, rest] + ([tools] if tools else [])
    # An array opens, and has a comma behind all but one.
    most = MAX_VALUES - len(items)
    return sum([piece.values() for piece in pieces]) > most and (
        sum([piece.values(exactly=True) for piece in pieces]) > most
    )
