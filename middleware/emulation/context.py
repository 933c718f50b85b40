"""What was said last, and what may be a call because of where it stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from middleware.emulation.found import Found


class Candidate(NamedTuple):
    """What may be a call; it waits for the end of the answer."""

    found: Sequence[Found]
    raw: str
    exact: bool
    fenced: bool = False
    """A fence of its own was around it: prose behind it speaks of it."""
    marked: bool = False
    """It was not bare JSON or Python, but written in a format for calls."""


_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_REMEMBERED = 160


@dataclass(slots=True)
class Context:
    """What was said last."""

    said: str = ""
    code: bool = False
    """A back-tick is open in this paragraph."""

    def add(self, text: str) -> None:
        self.said = (self.said + text)[-_REMEMBERED:]
        if "`" in text or "\n" in text:
            *earlier, last = _PARAGRAPH.split(text)
            self.code = (self.code and not earlier) ^ (last.count("`") % 2 == 1)

    @property
    def line(self) -> str:
        """What stands on the line so far."""
        return self.said.rpartition("\n")[2].strip()
