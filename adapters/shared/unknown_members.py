"""Names what a client put into messages and tools and their upstream has no place for."""

from __future__ import annotations

from functools import lru_cache

from adapters.protocol import CARRIER, RESULT_OF, TURN, ChatRequest, Json
from adapters.receipts import Notes

# Left to the leaf: each language carries these or says itself what becomes of them.
_MESSAGE = frozenset(
    {
        *("role", "content", "name", "refusal", "audio", "tool_calls", "tool_call_id", "is_error"),
        *("reasoning_content", "reasoning", "thinking_blocks", TURN, RESULT_OF, CARRIER),
    }
)
_PART = frozenset({"type", "text", "refusal", "image_url", "input_audio", "file"})
_TOOL = frozenset({"name", "description", "parameters", "strict", "format"})


def note_unknown_members(
    request: ChatRequest, notes: Notes, who: str, beyond: tuple[str, ...] = ()
) -> None:
    """Name members that are none of OpenAI's own: those are the leaf's to carry or to name.

    The first of each name stands for all; `beyond` is what this language has besides.
    """
    found: dict[str, str] = {}
    message_members, part_members, tool_members = _members(beyond)
    for position, message in enumerate(request.messages):
        if not message.keys() <= message_members:
            _take(message, message_members, f"messages[{position}]", found)
        if type(message.get("content")) is list:
            for at, part in enumerate(message["content"]):
                if not part.keys() <= part_members:
                    _take(part, part_members, f"messages[{position}].content[{at}]", found)
    for position, tool in enumerate(request.tools):
        kind = tool.get("type", "function")
        if not tool[kind].keys() <= tool_members:
            _take(tool[kind], tool_members, f"tools[{position}].{kind}", found)
        if len(tool) > 2:
            _take(tool, frozenset(("type", kind, *beyond)), f"tools[{position}]", found)
    for path in found.values():
        notes.add("member_dropped", path, f"{who} has nothing like it")


@lru_cache(maxsize=16)
def _members(beyond: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    return _MESSAGE.union(beyond), _PART.union(beyond), _TOOL.union(beyond)


def _take(holder: Json, known: frozenset[str], where: str, found: dict[str, str]) -> None:
    for name in holder:
        if name not in known and holder[name]:
            found.setdefault(name, f"{where}.{name}")
