"""What clients said in a language of their own, on its way to the leaf, and whose thoughts a turn
has.

`fit` makes a request fit for one place: below it nothing is private but what its leaf can read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import repeat
from operator import attrgetter, contains

from adapters.protocol import CARRIED, CARRIER, THOUGHTS_OF, Carried, ChatRequest, Json
from adapters.receipts import Note, Notes, Receipt
from adapters.shared.beginnings import writer_of

THOUGHTS = frozenset({"reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"})
"""Members of an assistant message that hold what its upstream thought."""
_SIGNED = "thinking_blocks"
_LIMIT = "max_completion_tokens"
_CARRIED_ALONE = frozenset((Carried,))
_language_of = attrgetter("language")
_PLACES = 8
"""How many turns a note names."""


def fit(request: ChatRequest, language: str, upstream: str) -> tuple[ChatRequest, Receipt]:
    """Leave out what this place cannot read, and say what that loses; raise what must not be lost.

    `upstream`: whose thoughts may stay; empty: it sees to that itself.
    """
    native = request.native
    if native is not None and native.language == language and _are_read_by(language, request):
        return request, ()
    if native is None and all(map(CARRIED.isdisjoint, request.messages)):
        return request, ()
    lost = Notes()
    if native is not None and native.language != language:
        _lose(native, lost)
        native = None
    begin = partial(_Place, language, upstream)
    place = writer_of(request.messages, begin, ("carriers", language, upstream))
    lost.add_all(place.lost.receipt())
    fitting = replace(request, messages=tuple(place.messages), native=native)
    return fitting, _receipt(lost.receipt(), place.left)


def shortened(request: ChatRequest, most: int | None) -> tuple[ChatRequest, Receipt]:
    """Within the longest answer of a model: clients of other protocols send one number to all."""
    asked = request.params.get(_LIMIT)
    if request.native is None or most is None or type(asked) is not int or asked <= most:
        return request, ()
    note = Note("max_tokens_lowered", "", f"max_tokens was lowered from {asked} to {most}")
    return replace(request, params={**request.params, _LIMIT: most}), (note,)


def _is_empty(message: Json) -> bool:
    """A turn of the assistant that has no more than what its own leaf would have read."""
    return not message.get("content") and message.keys() <= {"role", "content"}


@dataclass(slots=True)
class _Place:
    language: str
    upstream: str
    messages: list[Json] = field(default_factory=list)
    """What is left of them."""
    lost: Notes = field(default_factory=Notes)
    left: list[str] = field(default_factory=list)
    """Turns without the thoughts they had."""
    position: int = 0

    def copy(self) -> _Place:
        said, lost, left = [*self.messages], self.lost.copy(), [*self.left]
        return _Place(self.language, self.upstream, said, lost, left, self.position)

    def add(self, message: Json) -> None:
        if not CARRIED.isdisjoint(message):
            message = self._fitting(message, f"messages[{self.position}]")
        if message["role"] != "assistant" or not _is_empty(message):
            self.messages.append(message)
        self.position += 1

    def _fitting(self, message: Json, where: str) -> Json:
        kept = message.copy()
        owner = kept.pop(THOUGHTS_OF, None)
        if CARRIER in kept:
            self._leave_others(kept, where)
        if owner is None or not self.upstream or owner == self.upstream:
            return kept
        if not THOUGHTS.isdisjoint(kept):
            self.left.append(where)
        return {name: said for name, said in kept.items() if name not in THOUGHTS}

    def _leave_others(self, message: Json, where: str) -> None:
        carried = message[CARRIER]
        if not isinstance(carried, Carried):
            text = "only the gateway says what is carried"
            self.lost.add("member_dropped", f"{where}.{CARRIER}", text)
        elif carried.language == self.language:
            return
        else:
            _lose(carried, self.lost)
            # Signed blocks are words of that language too.
            message.pop(_SIGNED, None)
        del message[CARRIER]


def _receipt(lost: Receipt, left: Sequence[str]) -> Receipt:
    receipt = _first_of_each(lost)
    if not left:
        return receipt
    more = f" and {len(left) - _PLACES} more" if len(left) > _PLACES else ""
    text = f"thoughts of another upstream were left out of {', '.join(left[:_PLACES])}{more}"
    return (*receipt, Note("thoughts_left", "", text))


def _are_read_by(language: str, request: ChatRequest) -> bool:
    """Whether a leaf of this language may have each message as it is."""
    messages = request.messages
    carried = [*map(dict.get, messages, repeat(CARRIER))]
    return (
        _CARRIED_ALONE.issuperset(map(type, carried))
        and {language}.issuperset(map(_language_of, carried))
        and not any(map(contains, messages, repeat(THOUGHTS_OF)))
    )


def _lose(carried: Carried, lost: Notes) -> None:
    if carried.refusal is not None:
        raise carried.refusal
    lost.add_all(carried.lost)


def _first_of_each(receipt: Receipt) -> Receipt:
    """A long conversation has the same again and again."""
    first: dict[tuple[str, str], Note] = {}
    for note in receipt:
        first.setdefault((note.code, note.text), note)
    return tuple(first.values())


def with_search(native: Carried) -> Carried:
    """The same where the gateway searches the web itself."""
    lost = tuple(note for note in native.lost if note.code != "tool_dropped")
    return replace(native, lost=lost, refusal=None, search=False)
