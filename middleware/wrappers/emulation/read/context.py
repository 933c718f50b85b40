"""What was said last, and what may be a call because of where it stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from adapters.protocol import TextDelta
from middleware.wrappers.emulation.formats.raw_call import RawCall


class Candidate(NamedTuple):
    """What may be a call; it waits for the end of the answer."""

    found: Sequence[RawCall]
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
    for one in queue:
        if behind and isinstance(one, TextDelta) and one.text.strip():
            return True
        behind = behind or (isinstance(one, Candidate) and one.fenced)
    return False


_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_TICKS = re.compile(r"`++")
_REMEMBERED = 160


def ticks(text: str) -> int:
    """How many times back-ticks stand in it, however many at once."""
    return len(_TICKS.findall(text))


@dataclass(slots=True)
class Context:
    """What was said last."""

    said: str = ""
    code: bool = False
    """A back-tick is open in this paragraph."""

    def add(self, text: str) -> None:
        if self.code or "`" in text:
            *earlier, last = _PARAGRAPH.split(text)
            goes_on = not earlier and self.said.endswith("`") and last.startswith("`")
            self.code = (self.code and not earlier) ^ ((ticks(last) - goes_on) % 2 == 1)
        self.said = (self.said + text if len(text) < _REMEMBERED else text)[-_REMEMBERED:]

    @property
    def line(self) -> str:
        """What stands on the line so far."""
        return self.said.rpartition("\n")[2].strip()
