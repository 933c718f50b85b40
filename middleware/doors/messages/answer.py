"""What a streamed answer and a whole one say alike."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.protocol import ChatRequest, Finish, Json, Usage
from adapters.receipts import Note, Receipt
from adapters.shared.toolbox import tools_text
from middleware.doors.messages.words import signature
from middleware.doors.x_usetool import warnings_object

# 3.6 bytes of text are a token, at the least: a token has 18 parts, a byte 5.
_TOKEN, _BYTE = 18, 5
# Tokens of a message, of tools at all, of an image.
_MESSAGE, _TOOLS, _IMAGE = 3, 340, 1600
_IDENTITY = re.compile(r"[a-zA-Z0-9_-]{1,256}")
_REASONS: Mapping[str, str] = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
_OWN_LENGTHS = frozenset(("model_context_window_exceeded", "pause_turn"))
ESTIMATED = Note("usage_estimated", "", "the upstream reported no usage: these are estimates")


@dataclass(slots=True)
class Answering:
    """One answer's ids, signatures and figures."""

    request: ChatRequest
    id: str
    silent: bool = False
    """Thoughts are signed and not told, as the client asked for it."""
    upstream: str = ""
    """Who answers."""
    weight: int | None = None
    """Of the request's messages, if it is known."""
    taken: set[str] = field(default_factory=set)
    """Ids of calls that the conversation has already."""

    def head(self) -> Json:
        """What stands in an answer before anything is said."""
        model = self.request.model
        return {"id": self.id, "type": "message", "role": "assistant", "model": model}

    def asked(self) -> int:
        """Tokens of the request, as far as anybody knows before its answer is there."""
        return estimate(self.request, self.weight)

    def signature(self, thought: str) -> str:
        return signature(self.request.call.secret, self.upstream, thought)

    def call_id(self, identity: str) -> str:
        """An id that Claude would take too, should this conversation ever get there."""
        if not self.taken:
            self.taken.update(_call_ids(self.request.messages))
        if identity in self.taken or not _IDENTITY.fullmatch(identity):
            text = f"{identity}/{len(self.taken)}".encode("utf-8", "replace")
            digest = base64.b32encode(hashlib.sha256(text).digest())
            identity = "toolu_" + digest[:24].decode().lower()
        self.taken.add(identity)
        return identity

    def usage(self, usage: Usage | None, said: int) -> Json:
        """`said`: how many letters there were, for when nobody counted tokens."""
        if usage is None:
            return {"input_tokens": self.asked(), "output_tokens": -(-_BYTE * said // _TOKEN)}
        figures = _prompt_figures(usage)
        figures["output_tokens"] = usage.completion
        if usage.reasoning is not None:
            figures["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
        return figures


def _prompt_figures(usage: Usage) -> Json:
    if usage.cached is None and usage.cache_write is None:
        return {"input_tokens": usage.prompt}
    read, written = usage.cached or 0, usage.cache_write or 0
    return {
        "input_tokens": max(0, usage.prompt - read - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
    }


def unsayable(name: str) -> Note:
    """Of a member of answers that messages have nothing like."""
    if name == "annotations":
        return Note("annotations_dropped", "", "messages have no place for such sources")
    return Note("answer_member_dropped", "", f"messages have nothing like '{name}'")


def own_words(late: Receipt, told: Json, usage: Usage | None) -> Json:
    """What of the gateway's own is told at an answer's end."""
    if usage is None:
        late = (*late, ESTIMATED)
    return (warnings_object(late) if late else {}) | told


def ending(finish: Finish, called: bool, refusal: str) -> Json:
    """`stop_reason` and what goes with it."""
    reason, stop = _REASONS.get(finish.reason, "refusal"), None
    if finish.reason == "length" and finish.native in _OWN_LENGTHS:
        reason = finish.native
    elif finish.reason == "stop":
        reason, stop = _natural_end(finish.stop, called, refusal)
    said: Json = {"stop_reason": reason, "stop_sequence": stop}
    if reason == "refusal" and refusal:
        said["stop_details"] = {"type": "refusal", "category": None, "explanation": refusal}
    return said


def _natural_end(stop: str | None, called: bool, refusal: str) -> tuple[str, str | None]:
    if called:
        return "tool_use", None
    if refusal:
        return "refusal", None
    return ("end_turn", None) if stop is None else ("stop_sequence", stop)


def estimate(request: ChatRequest, messages: int | None = None) -> int:
    """Tokens of a request, rather too many than too few: who counts on them compacts in time.

    `messages`: what its messages weigh, if it is known.
    """
    weight = sum(map(weight_of, request.messages)) if messages is None else messages
    if tools := request.tools:
        weight += _BYTE * len(tools_text(tools, request.call.owner)) + _TOKEN * _TOOLS
    return max(1, -(-weight // _TOKEN))


def weight_of(message: Json) -> int:
    """In parts of a token."""
    content = message.get("content")
    size = _size(content) + _size(message.get("reasoning_content"))
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        size += _size(function.get("name")) + _size(function.get("arguments"))
    return _BYTE * size + _TOKEN * (_MESSAGE + _IMAGE * _images(content))


def _size(content: Any) -> int:
    if isinstance(content, str):
        return len(content) if content.isascii() else len(content.encode("utf-8", "replace"))
    if isinstance(content, list):
        return sum(_size(part.get("text")) + _size(_data(part)) for part in content)
    return 0


def _data(part: Json) -> Any:
    return (part.get("file") or {}).get("file_data")


def _images(content: Any) -> int:
    if not isinstance(content, list):
        return 0
    return sum(part["type"] == "image_url" for part in content)


def _call_ids(messages: Iterable[Json]) -> Iterable[str]:
    for message in messages:
        for call in message.get("tool_calls") or ():
            yield call["id"]
