"""How many tokens of context to ask for: what does not fit, the server cuts off silently."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from adapters.protocol import Json
from adapters.receipts import Note, Receipt

MINIMUM = 8192
_BYTES_PER_TOKEN = 3
_TOKENS_PER_IMAGE = 1500
_ANSWER_TOKENS = 1024
# Clients name limits they never use; memory for all of it would push the model off the GPU.
_MOST_ANSWER_TOKENS = 8192


def fitting(tokens: int, least: int, most: int | None) -> int:
    """Return the first window of a model: room for as much again, in a power of two."""
    window = max(least, 1 << (2 * tokens - 1).bit_length())
    return min(window, most) if most else window


def grown(tokens: int, held: int, most: int | None) -> int:
    """Return the window after this one, once it is outgrown: the model's own, and so the last.

    Each change loads the model again, and forgets what it had read of every conversation.
    """
    return held if tokens <= held else most or fitting(tokens, held, most)


def overflow(tokens: int, window: Any) -> Receipt:
    if type(window) is not int or tokens <= window:
        return ()
    text = f"about {tokens} tokens for a context of {window}: the oldest messages may be lost"
    return (Note("context_may_be_truncated", "messages", text),)


class Pictures(NamedTuple):
    """What images of a conversation take of its text."""

    number: int = 0
    length: int = 0

    def more(self, images: list[str]) -> Pictures:
        """With those of a message, whose last member they are."""
        length = len(orjson.dumps({"": "", "images": images})) - len(orjson.dumps({"": ""}))
        return Pictures(self.number + len(images), self.length + length)


def needed(body: Json, pictures: Pictures) -> int:
    """Estimate the tokens of a request and its answer, rather too many than too few."""
    size = len(orjson.dumps((body["messages"], body.get("tools")))) - pictures.length
    limit = body["options"].get("num_predict")
    limited = type(limit) is int and limit > 0
    answer = min(limit, _MOST_ANSWER_TOKENS) if limited else _ANSWER_TOKENS
    return size // _BYTES_PER_TOKEN + pictures.number * _TOKENS_PER_IMAGE + answer
