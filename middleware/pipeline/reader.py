"""A reasoner's events → its thought, however it tells thought from answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from adapters.protocol import (
    Event,
    Finish,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallStart,
)

_OPENER, _CLOSER = "<think>", "</think>"
_MOST_BLANK = 1000


class Thought:
    """Reads one reasoner's stream.

    Reasoning that comes apart from text is the thought, and text is the answer. Where nothing comes
    apart, text is the thought, up to `</think>` if the model or its template marks it.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.answered = False
        """The thought is over: what follows nobody reads."""
        self.finish: Finish | None = None
        self._apart = False
        self._begun = False
        self._held = ""

    def read(self, events: Iterable[Event]) -> str:
        """Return what these events add to the thought."""
        before = len(self.pieces)
        for event in events:
            if isinstance(event, Finish):
                self._end(event)
            elif not self.answered:
                self._read(event)
        return "".join(self.pieces[before:])

    def text(self) -> str:
        return "".join(self.pieces).strip()

    def _read(self, event: Event) -> None:
        match event:
            case ReasoningDelta(text):
                self._apart = True
                self.pieces.append(text)
            case TextDelta(text) if self._apart:
                self.answered = not text.isspace()
            case TextDelta(text):
                self._held += text
                self._advance()
            case ToolCallStart() | RefusalDelta():
                self.answered = True

    def _advance(self) -> None:
        if not self._begun and not self._begin():
            return
        thought, closer, _ = self._held.partition(_CLOSER)
        self.answered = bool(closer)
        kept = 0 if closer else _beginning_of(_CLOSER, thought)
        self._held = thought[len(thought) - kept :]
        if len(thought) > kept:
            self.pieces.append(thought[: len(thought) - kept])

    def _begin(self) -> bool:
        """Skip an opener, which may still be coming."""
        bare = self._held.lstrip()
        blank = len(self._held) - len(bare)
        if len(bare) < len(_OPENER) and _OPENER.startswith(bare) and blank <= _MOST_BLANK:
            return False
        self._begun = True
        self._held = bare.removeprefix(_OPENER).lstrip("\n")
        return True

    def _end(self, finish: Finish) -> None:
        self.finish = finish
        if self._held and not (self.answered or self._apart):
            self.pieces.append(self._held)
            self._held = ""


def _beginning_of(mark: str, text: str) -> int:
    """How many characters at the end of a text may be the beginning of a mark."""
    longest = min(len(mark) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text.endswith(mark[:size])), 0)
