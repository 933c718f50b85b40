"""Parts of an answer that a chunk and a whole completion say alike."""

from __future__ import annotations

from typing import Any

from adapters.protocol import Finish, Json, value_class

THINKING_BLOCKS = "thinking_blocks"


@value_class
class Heading:
    """What is the same in every chunk of an answer."""

    id: str
    created: int
    model: str
    """The client's own name for the model."""
    legacy: bool = False
    usage_chunk: bool = False

    def reason(self, finish: Finish) -> str:
        return "function_call" if self.legacy and finish.reason == "tool_calls" else finish.reason


def echoed(members: Json, finish: Finish | None) -> Json:
    """Members of a message, with signed thoughts where clients can echo them: before everything
    else, or not at all.
    """
    thoughts = members.get(THINKING_BLOCKS)
    said = ((finish.turn if finish else None) or {}).get("content")
    if not thoughts or said is None or said[: len(thoughts)] == thoughts:
        return members
    return {name: value for name, value in members.items() if name != THINKING_BLOCKS}


def joined(known: Any, value: Any) -> Any:
    """Two pieces of one member of a message; what cannot be joined is replaced."""
    if isinstance(known, list) and isinstance(value, list):
        return [*known, *value]
    if isinstance(known, str) and isinstance(value, str):
        return known + value
    if isinstance(known, dict) and isinstance(value, dict):
        return {**known, **value}
    return value
