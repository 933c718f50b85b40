"""A reasoner's events → its thought, however it tells thought from answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from adapters.protocol import (
    Aside,
    Event,
    Finish,
    Noted,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from adapters.shared.think_tags import Splitter


class Thought:
    """Reads one reasoner's stream.

    Reasoning that comes apart from text is the thought, and text is the answer. Where nothing comes
    apart, text is the thought, up to its closing tag if the model or its template marks it.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.answered = False
        """The thought is over: what follows nobody reads."""
        self.finish: Finish | None = None
        self._apart = False
        self._split = Splitter(unmarked="thought")

    def read(self, events: Iterable[Event]) -> str:
        """Return what these events add to the thought.

        Nothing behind it is read, its figures neither: whether they came along with the answer's
        beginning is chance, and the same answer must count the same.
        """
        before = len(self.pieces)
        for event in events:
            if self.answered:
                break
            if isinstance(event, Finish):
                self._end(event)
            else:
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
                self._think(self._split.feed(text))
                self.answered = self._split.place in ("gap", "text")
            case ToolCallStart() | RefusalDelta():
                self.answered = True
            case Opened() | ToolCallDelta() | Aside() | Noted() | Finish():
                pass
            case _:
                assert_never(event)

    def _think(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, ReasoningDelta):
                text = event.text if self.pieces else event.text.lstrip("\n")
                self.pieces += filter(None, (text,))

    def _end(self, finish: Finish) -> None:
        self.finish = finish
        if not self._apart:
            self._think(self._split.close())
