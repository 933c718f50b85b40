"""What a whole answer comes to: its reason, its usage, and Claude's own message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.protocol import FinishReason, Json, Usage
from adapters.receipts import Note, Receipt
from adapters.shared.usage import figure

FINISH: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "content_filter",
}
_FIGURES = (
    *("input_tokens", "output_tokens"),
    *("cache_read_input_tokens", "cache_creation_input_tokens"),
)


def finish_reason(native: str, details: Json, called: bool) -> tuple[FinishReason, Receipt]:
    """OpenAI's reason for Claude's; `called` says that the client has calls to answer."""
    reason = FINISH.get(native)
    if reason is None:
        said = f"'{native}'" if native else "nothing"
        return "stop", (Note("finish_unknown", "finish_reason", f"Claude's reason was {said}"),)
    if native == "tool_use" and not called:
        text = "Claude stopped for a call that is not the client's"
        return "stop", (Note("finish_without_calls", "finish_reason", text),)
    if native == "pause_turn":
        text = "Claude paused: send the conversation again to let it go on"
        return reason, (Note("turn_paused", "finish_reason", text),)
    if native == "refusal":
        category = details.get("category") or "not given"
        return reason, (Note("refusal", "finish_reason", f"Claude refused; category: {category}"),)
    return reason, ()


def usage_of(said: Json) -> tuple[Usage, Receipt]:
    """Claude counts cached tokens beside `input_tokens`, OpenAI within."""
    asked, answered, read, written = map(figure, map(said.get, _FIGURES))
    details = said.get("output_tokens_details")
    thought = figure(details.get("thinking_tokens")) if isinstance(details, dict) else None
    prompt = (asked or 0) + (read or 0) + (written or 0)
    usage = Usage(prompt, answered or 0, read, written, thought)
    if asked is not None and answered is not None:
        return usage, ()
    text = "the upstream did not count all tokens; what is missing is 0"
    return usage, (Note("usage_estimated", "usage", text),)


def type_of(pieces: list[Any]) -> type[Any]:
    """Of a member that came in these pieces: a text, or a list of them."""
    return str if type(pieces[0]) is str else list


def joined(begun: Any, pieces: list[Any]) -> Any:
    """Such a member, whole, with what its block began with."""
    if type_of(pieces) is str:
        return (begun or "") + "".join(pieces)
    return [*(begun or ()), *pieces]


def turn_of(blocks: list[Json]) -> Json | None:
    """Claude's own message, where OpenAI's text and calls could not be turned back into it."""
    if _sayable(blocks):
        return None
    # Claude refuses a block of empty text, its own too.
    kept = [block for block in blocks if block.get("text") != ""]
    return {"role": "assistant", "content": kept}


def _sayable(blocks: list[Json]) -> bool:
    """Texts without citations, then calls: the order OpenAI has too."""
    called = False
    for block in blocks:
        if block.get("text") == "":
            continue  # left out
        if block["type"] == "tool_use":
            called = True
        elif called or block["type"] != "text":
            return False
        if block.get("citations"):
            return False
    return True
