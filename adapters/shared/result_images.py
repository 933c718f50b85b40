"""Images among the results of server tools: where a language has them, and where it has none.

They come in a tool's message, or in a user's, where emulation has made one of the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adapters.protocol import RESULT_OF, Json
from adapters.receipts import Notes
from adapters.shared.history import text_of

_BELOW, _NOT_SEEN = "[image: see the next message]", "[image]"


def without_images(messages: Sequence[Json], notes: Notes) -> Sequence[Json]:
    """For models that see none: a word in the place of each."""
    return [_told(one, _NOT_SEEN, notes) if _has_images(one) else one for one in messages]


def images_behind(messages: Sequence[Json]) -> Sequence[Json]:
    """For languages whose results are text: a user's message behind the results of the round."""
    return [*_behind(messages)] if any(map(_has_images, messages)) else messages


def _has_images(message: Json) -> bool:
    return RESULT_OF in message and isinstance(message["content"], list)


def _behind(messages: Sequence[Json]) -> Iterator[Json]:
    images: list[Json] = []
    for message in messages:
        if images and message["role"] != "tool":
            yield {"role": "user", "content": images}
            images = []
        if message["role"] == "user" and RESULT_OF in message:
            yield _unmarked(message)
        elif _has_images(message):
            images += (part for part in message["content"] if part["type"] == "image_url")
            yield _told(message, _BELOW)
        else:
            yield message
    if images:
        yield {"role": "user", "content": images}


def _told(message: Json, word: str, notes: Notes | None = None) -> Json:
    parts = message["content"]
    said = [part if part["type"] == "text" else {"type": "text", "text": word} for part in parts]
    if notes is not None:
        text = "a tool gave an image, and this model reads none"
        notes.add("image_dropped", f"tools.{message[RESULT_OF]}", text)
    return {**_unmarked(message), "content": text_of(said)}


def _unmarked(message: Json) -> Json:
    return {name: message[name] for name in message if name != RESULT_OF}
