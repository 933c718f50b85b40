"""Text that begins with the model's thought in tags, split into the two."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from adapters.protocol import Event, ReasoningDelta, TextDelta

OPENER, CLOSER = "<think>", "</think>"
"""What thoughts are shown to clients with: `Show` writes them, recall reads them back."""
# What models and their templates put around thoughts: opener → closer.
TAGS: Mapping[str, str] = {
    **{
        f"<{word}>": f"</{word}>"
        for word in (
            *("think", "thinking", "thought", "thoughts", "reasoning", "reflection"),
            *("mm:think", "seed:think"),
        )
    },
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel>thought": "<channel|>",
    "<|think:start|>": "<|think:end|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "◁think▷": "◁/think▷",
}
_CLOSERS = tuple(dict.fromkeys(TAGS.values()))
_LONGEST_BLANK = 1024


@dataclass(slots=True)
class Splitter:
    """Only a tag that begins the text counts: anywhere else it is what the model talks about."""

    unmarked: Literal["text", "thought"] = "text"
    """What a text is that begins without a tag; a thought ends with any closer then."""
    place: Literal["start", "thought", "gap", "text"] = "start"
    held: str = ""
    """What may still be the beginning of a tag."""
    closers: tuple[str, ...] = _CLOSERS

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
        opener = opener_of(seen)
        if opener:
            self.place, self.closers = "thought", (TAGS[opener],)
            self.held = seen[len(opener) :]
        elif opener == "" or len(self.held) > _LONGEST_BLANK:
            self.place = self.unmarked

    def _think(self) -> Iterator[Event]:
        closer = _any_of(self.closers).search(self.held)
        if closer:
            self.place = "gap"
            thought, rest = self.held[: closer.start()], self.held[closer.end() :]
        else:
            begun = len(self.held) - begun_at_end(self.held, self.closers)
            thought, rest = self.held[:begun], self.held[begun:]
        if thought:
            yield ReasoningDelta(thought)
        self.held = rest

    def close(self) -> Iterator[Event]:
        """The text is over: what was held is what it looks like."""
        place = self.unmarked if self.place == "start" else self.place
        if self.held and place in ("text", "thought"):
            yield (ReasoningDelta if place == "thought" else TextDelta)(self.held)
        self.held = ""


@lru_cache(maxsize=64)
def _any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, words)))


def opener_of(text: str, tags: Iterable[str] = TAGS) -> str | None:
    """The tag a text begins with, "" if it begins with none; None: more text will tell."""
    opener = next((tag for tag in tags if text.startswith(tag)), "")
    return opener if opener or not any(tag.startswith(text) for tag in tags) else None


def begun_at_end(text: str, words: tuple[str, ...]) -> int:
    """How many characters at the end may begin one of the words."""
    longest = min(max(map(len, words)) - 1, len(text))
    if not any(word[0] in text[-longest:] for word in words):
        return 0  # as nearly always
    for length in range(longest, 0, -1):
        end = text[len(text) - length :]
        if any(word.startswith(end) and word != end for word in words):
            return length
    return 0
