"""Text that begins with the model's thought in `<think>…</think>`, split into the two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from adapters.protocol import Event, ReasoningDelta, TextDelta

_OPEN, _CLOSE = "<think>", "</think>"
_MOST_BLANK = 1000
"""Nothing waits longer for its first word."""


@dataclass(slots=True)
class Splitter:
    """Only a tag that begins the text counts: anywhere else it is what the model talks about."""

    place: Literal["start", "thought", "gap", "text"] = "start"
    held: str = ""
    """What may still be the beginning of a tag."""

    def feed(self, text: str) -> Iterator[Event]:
        if self.place == "text":
            yield TextDelta(text)
            return
        self.held += text
        if self.place == "start":
            self._begin()
        if self.place == "thought":
            yield from self._think()
        if self.place == "gap":
            self.held = self.held.lstrip()
        if self.held and self.place in ("gap", "text"):
            self.place = "text"
            yield TextDelta(self.held)
            self.held = ""

    def _begin(self) -> None:
        seen = self.held.lstrip()
        if seen.startswith(_OPEN):
            self.place, self.held = "thought", seen[len(_OPEN) :]
        elif not _OPEN.startswith(seen) or len(self.held) > _MOST_BLANK:
            self.place = "text"

    def _think(self) -> Iterator[Event]:
        thought, closed, rest = self.held.partition(_CLOSE)
        if closed:
            self.place = "gap"
        else:
            kept = _begun(thought)
            thought, rest = thought[: len(thought) - kept], thought[len(thought) - kept :]
        if thought:
            yield ReasoningDelta(thought)
        self.held = rest

    def close(self) -> Iterator[Event]:
        """The text is over: what was held is what it looks like."""
        if self.held and self.place in ("start", "thought"):
            yield (ReasoningDelta if self.place == "thought" else TextDelta)(self.held)
        self.held = ""


def _begun(text: str) -> int:
    """How many characters at the end may begin the closing tag."""
    for length in range(min(len(_CLOSE) - 1, len(text)), 0, -1):
        if text.endswith(_CLOSE[:length]):
            return length
    return 0
