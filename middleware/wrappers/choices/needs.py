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
    size = sum(map(_size, request.messages))
    size += len(orjson.dumps(request.tools)) if request.tools else 0
    params = request.params
    form: Any = params.get("response_format") or {}
    return Needs(
        images=any(map(_has_images, request.messages)),
        tools=bool(request.tools),
        json_schema=form.get("type") == "json_schema",
        prompt=size // _BYTES_A_TOKEN,
        answer=params.get("max_completion_tokens") or params.get("max_tokens") or _ANSWER,
    )


def _has_images(message: Json) -> bool:
    content = message.get("content")
    return type(content) is list and any(part.get("type") == "image_url" for part in content)


def _size(message: Json) -> int:
    content: Any = message.get("content") or ""
    parts = [content] if type(content) is str else [part.get("text") or "" for part in content]
    calls = message.get("tool_calls") or ()
    called = sum(len(call.get("function", {}).get("arguments") or "") for call in calls)
    return called + sum(map(_bytes, parts))


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
