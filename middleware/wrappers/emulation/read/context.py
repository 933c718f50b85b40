"""What was said last, and what may be a call because of where it stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from adapters.protocol import TextDelta
from adapters.shared.calls import MOST_CALLS
from middleware.wrappers.emulation.formats.raw_call import RawCall


class Candidate(NamedTuple):
    """What may be a call; it waits for the end of the answer."""

    calls: Sequence[RawCall]
    raw: str
    exact: bool
    fenced: bool = False
    """A fence of its own was around it: prose behind it speaks of it."""
    marked: bool = False
    """It was not bare JSON or Python, but written in a format for calls."""

    def may_be(self, fenced: bool, certain: bool) -> bool:
        """Is it a call where those in fences, and those that are bare, are or are not?"""
        return (fenced or not self.fenced) and (certain or self.marked)


def goes_on(queue: Sequence[object]) -> bool:
    """Is anything said behind the first call in a fence?"""
    behind = False
    for item in queue:
        if behind and isinstance(item, TextDelta) and item.text.strip():
            return True
        behind = behind or (isinstance(item, Candidate) and item.fenced)
    return False


@dataclass(slots=True)
class Attempt:
    """A reading on trial: what it does is put off until what stands around it is known.

    `Output` writes it, `Quotation` decides by it.
    """

    steps: list[Callable[[], None]] = field(default_factory=list)
    """What is done if it counts."""
    calls: list[RawCall | Candidate | str] = field(default_factory=list)
    """What it read; a text is a call that cannot be read."""
    spoken: bool = False
    """It met text."""
    own: bool = False
    """It met a block of our own language."""

    @property
    def has_room(self) -> bool:
        """May more be put off? What is done at once is to take a moment only."""
        return len(self.steps) < MOST_CALLS


_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_TICKS = re.compile(r"`++")
_REMEMBERED = 160


def ticks(text: str) -> int:
    """How many times back-ticks stand in it, however many at once."""
    return len(_TICKS.findall(text))


@dataclass(slots=True)
class Context:
    """What was said last."""

    tail: str = ""
    code: bool = False
    """A back-tick is open in this paragraph."""

    def add(self, text: str) -> None:
        if self.code or "`" in text:
            *earlier, last = _PARAGRAPH.split(text)
            goes_on = not earlier and self.tail.endswith("`") and last.startswith("`")
            self.code = (self.code and not earlier) ^ ((ticks(last) - goes_on) % 2 == 1)
        self.tail = (self.tail + text if len(text) < _REMEMBERED else text)[-_REMEMBERED:]

    @property
    def line(self) -> str:
        """What stands on the line so far."""
        return self.tail.rpartition("\n")[2].strip()
