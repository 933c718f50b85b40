"""What a request needs of whoever answers it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from adapters.protocol import ChatRequest, Json

_BYTES_A_TOKEN = 4
_ANSWER = 256
"""Tokens of an answer whose length nobody limits."""


class Needs(NamedTuple):
    images: bool
    tools: bool
    json_schema: bool
    prompt: int
    """Tokens, estimated; images are not counted."""
    answer: int
    """Tokens at most, or estimated."""


def needs_of(request: ChatRequest) -> Needs:
    images, size = False, 0
    for message in request.messages:
        content = message.get("content")
        if type(content) is str:
            size += _bytes(content)
        elif content:
            for part in content:
                images = images or part.get("type") == "image_url"
                size += _bytes(part.get("text") or "")
        for call in message.get("tool_calls") or ():
            size += len(call.get("function", {}).get("arguments") or "")
    size += len(orjson.dumps(request.tools)) if request.tools else 0
    params = request.params
    form: Any = params.get("response_format") or {}
    answer = params.get("max_completion_tokens") or params.get("max_tokens") or _ANSWER
    schema = form.get("type") == "json_schema"
    return Needs(images, bool(request.tools), schema, size // _BYTES_A_TOKEN, answer)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def beginning(messages: Iterable[Json]) -> list[Json]:
    """All up to the first message of the user: what a conversation keeps to its end."""
    begun = []
    for message in messages:
        begun.append(message)
        if message.get("role") == "user":
            break
    return begun
