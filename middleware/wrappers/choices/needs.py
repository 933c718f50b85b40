"""What a request needs of whoever answers it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from adapters.protocol import RESULT_OF, ChatRequest, Json

_BYTES_A_TOKEN = 4
_ANSWER = 256
"""Tokens of an answer whose length nobody limits."""


@dataclass(slots=True)
class Needs:
    """Looked for when a place is asked of which something is known."""

    request: ChatRequest
    somebody_sees: Callable[[], bool] = lambda: True
    """Of those who may be asked, one reads images."""
    _prompt: int | None = None

    def images(self) -> bool:
        """One that a tool gave is left out with a word where nobody could read it."""
        held = list(filter(_has_images, self.request.messages))
        left_out = all(RESULT_OF in message for message in held)
        return bool(held) and (not left_out or self.somebody_sees())

    def tools(self) -> bool:
        return bool(self.request.tools)

    def json_schema(self) -> bool:
        form: Any = self.request.params.get("response_format") or {}
        return bool(form.get("type") == "json_schema")

    def fits(self, context: int) -> bool:
        """Whether the prompt does, as far as its bytes say."""
        most = context * _BYTES_A_TOKEN
        return 0 < self.request.call.size <= most or self.prompt() <= context

    def prompt(self) -> int:
        """Tokens, estimated; images are not counted."""
        if self._prompt is None:
            size = sum(map(_size, self.request.messages))
            size += len(orjson.dumps(self.request.tools)) if self.request.tools else 0
            self._prompt = size // _BYTES_A_TOKEN
        return self._prompt

    def answer(self) -> int:
        """Tokens at most, or estimated."""
        params = self.request.params
        return params.get("max_completion_tokens") or params.get("max_tokens") or _ANSWER


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
