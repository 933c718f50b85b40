"""Images among the results of server tools: where a language has them, and where it has none.

They come in a tool's message, or in a user's, where emulation has made one of the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from adapters.protocol import RESULT_OF, Json
from adapters.receipts import Note, Notes, Receipt
from adapters.shared.history import text_of

_BELOW, _NOT_SEEN = "[image: see the next message]", "[image]"


@dataclass(slots=True)
class ResultImages:
    """Says of one message after the other what stands in its place."""

    seen: bool
    """The model reads images, and none in results: they come behind the results of the round."""
    notes: Notes = field(default_factory=Notes)
    waiting: list[Json] = field(default_factory=list)
    """Images of the round's results."""

    def copy(self) -> ResultImages:
        return ResultImages(self.seen, self.notes.copy(), self.waiting.copy())

    def told(self, message: Json) -> Sequence[Json]:
        if RESULT_OF not in message and not self.waiting:
            return (message,)
        has_images = RESULT_OF in message and isinstance(message["content"], list)
        if not self.seen:
            message, lost = without_images(message)
            self.notes.add_all(lost)
            return (message,)
        if message["role"] == "tool" and has_images:
            self.waiting += (part for part in message["content"] if part["type"] == "image_url")
            return (_told(message, _BELOW),)
        if message["role"] == "tool":
            return (message,)
        return (*self.behind(), _unmarked(message) if has_images else message)

    def behind(self) -> Sequence[Json]:
        """What the results so far leave to be said; a conversation may end with it."""
        images, self.waiting = self.waiting, []
        return ({"role": "user", "content": images},) if images else ()


def without_images(message: Json) -> tuple[Json, Receipt]:
    """The same for a model that reads none, and what it loses."""
    if RESULT_OF not in message or not isinstance(message["content"], list):
        return message, ()
    text = "a tool gave an image, and this model reads none"
    note = Note("image_dropped", f"tools.{message[RESULT_OF]}", text)
    return _told(message, _NOT_SEEN), (note,)


def _told(message: Json, word: str) -> Json:
    parts = message["content"]
    said = [part if part["type"] == "text" else {"type": "text", "text": word} for part in parts]
    return {**_unmarked(message), "content": text_of(said)}


def _unmarked(message: Json) -> Json:
    return {name: message[name] for name in message if name != RESULT_OF}
