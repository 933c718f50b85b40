"""Names what a client put into messages and tools and their upstream has no place for.

Kinds of other distributions use `note_unknown_members` (docs/adapters.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from adapters.protocol import CARRIER, RESULT_OF, TURN, ChatRequest, Json
from adapters.receipts import Note, Notes, Receipt
from adapters.shared.cache import bounded
from adapters.shared.toolbox import REMEMBERED, key_of, said_in

# Left to the leaf: each language carries these or says itself what becomes of them.
_MESSAGE = frozenset(
    {
        *("role", "content", "name", "refusal", "audio", "tool_calls", "tool_call_id", "is_error"),
        *("reasoning_content", "reasoning", "thinking_blocks", TURN, RESULT_OF, CARRIER),
    }
)
_PART = frozenset({"type", "text", "refusal", "image_url", "input_audio", "file"})
_TOOL = frozenset({"name", "description", "parameters", "strict", "format"})


class UnknownMembers:
    """Finds members that are none of OpenAI's own: those are the leaf's to carry or to name.

    The first of each name stands for all; `beyond` is what a language has besides.
    """

    __slots__ = ("_beyond", "_found", "_members", "_messages", "_part_members")

    def __init__(self, beyond: tuple[str, ...] = ()) -> None:
        self._beyond = beyond
        self._members, self._part_members, _ = _members(beyond)
        self._messages = 0
        self._found: dict[str, str] = {}

    def copy(self) -> UnknownMembers:
        same = UnknownMembers(self._beyond)
        same._messages, same._found = self._messages, self._found.copy()
        return same

    def add(self, message: Json) -> None:
        """The message that follows those before."""
        if type(message.get("content")) is list or not message.keys() <= self._members:
            self.look(message, self._messages)
        self._messages += 1

    def look(self, message: Json, position: int) -> None:
        """The message at this position, for a writer that counts by itself."""
        if not message.keys() <= self._members:
            _take(message, self._members, f"messages[{position}]", self._found)
        if type(message.get("content")) is list:
            for at, part in enumerate(message["content"]):
                if not part.keys() <= self._part_members:
                    where = f"messages[{position}].content[{at}]"
                    _take(part, self._part_members, where, self._found)

    def receipt(self, request: ChatRequest, who: str) -> Receipt:
        """What messages have, and tools behind them."""
        return self.told(unknown_in_tools(request, self._beyond) if request.tools else {}, who)

    def told(self, in_tools: Mapping[str, str], who: str) -> Receipt:
        """The same, where it is known what tools have."""
        if not in_tools and not self._found:
            return ()
        found = {**self._found}
        for name, path in in_tools.items():
            found.setdefault(name, path)
        text = f"{who} has nothing like it"
        return tuple(Note("member_dropped", path, text) for path in found.values())


def note_unknown_members(request: ChatRequest, notes: Notes, who: str) -> None:
    """Name all of a request's, for a leaf that keeps nothing of conversations."""
    unknown = UnknownMembers()
    for message in request.messages:
        unknown.add(message)
    notes.add_all(unknown.receipt(request, who))


def unknown_in_tools(request: ChatRequest, beyond: tuple[str, ...]) -> Mapping[str, str]:
    """What a request's tools have: each name, and where it is first."""
    key = key_of(request.tools, request.call.owner)
    return _in_kept_tools(key, beyond) if key else unknown_in(request.tools, beyond)


@bounded(REMEMBERED)
def _in_kept_tools(key: bytes, beyond: tuple[str, ...]) -> Mapping[str, str]:
    return unknown_in(said_in(key), beyond)


def unknown_in(tools: Iterable[Json], beyond: tuple[str, ...]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    *_, members = _members(beyond)
    for position, tool in enumerate(tools):
        kind = tool.get("type", "function")
        if not tool[kind].keys() <= members:
            _take(tool[kind], members, f"tools[{position}].{kind}", found)
        if len(tool) > 2:
            _take(tool, frozenset(("type", kind, *beyond)), f"tools[{position}]", found)
    return found


@lru_cache(maxsize=16)
def _members(beyond: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    return _MESSAGE.union(beyond), _PART.union(beyond), _TOOL.union(beyond)


def _take(holder: Json, known: frozenset[str], where: str, found: dict[str, str]) -> None:
    for name in holder:
        if name not in known and holder[name]:
            found.setdefault(name, f"{where}.{name}")
