"""Calls stand on their own: what a line of prose, inline code or a listing holds is quoted.

A call is read first, with all it does put off; what stands around it then decides whether it was
one, or text that comes out as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from middleware.wrappers.emulation.formats.raw_call import RawCall
from middleware.wrappers.emulation.formats.table import TOKEN
from middleware.wrappers.emulation.read.context import Candidate, ticks
from middleware.wrappers.emulation.read.output import Output
from middleware.wrappers.emulation.read.tape import Tape, Waiting

# Prose that goes on with one of these speaks of what stands before them.
_GOES_ON = frozenset(",.;:!?)]}»”’\"'…、，。；：！？—–")
_SENTENCE = re.compile(r"[.!?…。！？][*_\"'”’)）\]»`]*\Z")
# A marker in the middle of a line, which the lines below it belong to.
_DANGLING = re.compile(r"[^\s`*#>][ \t]{0,8}[ \t`]USE[ _-]?TOOL[*_`:：\s]*+\Z", re.IGNORECASE)
_BLANK = re.compile(r"[^\S\n]*+")
_CLOSING = re.compile(r"(?:`{3,}|~{3,})\s*")
EXAMPLE = re.compile(
    r"\b(?:examples?|e\.g|for instance|samples?|looks? like|such as)\b|例|比如|形如", re.IGNORECASE
)
_INTRODUCED = re.compile(rf"{EXAMPLE.pattern}|[:：]\Z", re.IGNORECASE)
_LOOK, _PARAGRAPH = 64, 256

T = TypeVar("T")


def fence_line(tape: Tape) -> Waiting[str]:
    """The line of a fence, up to a token that stands on it; left on the tape."""
    line = yield from tape.line()
    token = TOKEN.search(line)
    return line[: token.start()] if token else line


def is_closing(line: str) -> bool:
    return _CLOSING.fullmatch(line) is not None


class Quotation:
    """Reads calls that may be quoted on their line."""

    def __init__(
        self, tape: Tape, output: Output, following: Callable[[], Waiting[Waiting[None] | None]]
    ) -> None:
        self._tape = tape
        self._output = output
        self._following = following
        """Reads the next call, if one follows or the end of what holds them."""

    def line(self, reading: Waiting[T]) -> Waiting[T]:
        """Take the calls, unless the line goes on around them."""
        tape, output = self._tape, self._output
        if output.trying:
            return (yield from reading)
        here = output.here
        before, code = here.line, here.code
        dangling = _DANGLING.search(here.said[-_LOOK:]) is not None
        tape.keep()
        output.attempt()
        result = yield from reading
        while (before or code) and output.has_room and (further := (yield from self._following())):
            yield from further
        calls = bool(output.tried)
        quoted = calls and (dangling or (yield from self._goes_on(before, code)))
        raw = tape.kept()
        if quoted and not output.forced:
            output.forget()
            output.say(raw)
        else:
            output.commit()
        return result

    def fence(self, fence: str, step: Callable[[], Waiting[None]]) -> Waiting[bool]:
        """Take a fence with the calls in it, if there is nothing else in it."""
        tape, output = self._tape, self._output
        _, _, before = output.here.said.rstrip().rpartition("\n")
        blocks, dropped = output.blocks, output.dropped
        raw = yield from self._contents(fence, step)
        own = output.blocks > blocks
        if own and not output.said_meanwhile and not self._is_example(before):
            output.commit()
            return True
        output.forget()
        taken = bool(output.tried) or own or output.dropped > dropped
        if output.said_meanwhile or not taken or (candidate := self._fenced(raw, before)) is None:
            tape.back(raw)
            return False
        if candidate.found:
            output.propose(candidate)
        return True

    def _contents(self, fence: str, step: Callable[[], Waiting[None]]) -> Waiting[str]:
        """Take a fence up to its end, or to what is no call."""
        tape, output = self._tape, self._output
        tape.keep()
        output.attempt()
        tape.pull(fence)
        while not output.said_meanwhile:
            yield from tape.past_blank()
            if tape.at == len(tape.text) or (yield from self._closed(fence)):
                break
            yield from step()
        return tape.kept()

    def _is_example(self, before: str) -> bool:
        """Does the line above say that the calls, all of tools that there are, are shown?"""
        return self._are_known() and _INTRODUCED.search(before) is not None

    def _are_known(self) -> bool:
        names = self._output.names
        return all(isinstance(one, RawCall) and names.find(one.name) for one in self._output.tried)

    def _closed(self, fence: str) -> Waiting[bool]:
        if (yield from self._tape.ahead(3)) != fence[:3]:
            return False
        line = yield from fence_line(self._tape)
        return is_closing(line) and bool(self._tape.pull(line))

    def _fenced(self, raw: str, before: str) -> Candidate | None:
        """The calls of a fence, which what is said behind it may still make an example."""
        output, found = self._output, list[RawCall]()
        if not output.forced and EXAMPLE.search(before):
            return None
        for one in output.tried:
            if isinstance(one, str):
                return None
            found += one.found if isinstance(one, Candidate) else (one,)
        exact = all(output.names.exact(one.name) for one in found)
        marked = not any(isinstance(one, Candidate) for one in output.tried)
        return Candidate(found, raw, exact, fenced=True, marked=marked)

    def _goes_on(self, before: str, code: bool) -> Waiting[bool]:
        if code and (yield from self._ticks()) % 2:
            return True
        after = yield from self._after()
        if after.islower() or after.isdigit() or after == "`":
            return True
        if not (before or self._output.said_meanwhile) or not after:
            return False
        return after in _GOES_ON or (after.isalpha() and not _SENTENCE.search(before))

    def _ticks(self) -> Waiting[int]:
        """How many back-ticks stand in the calls and behind them in the paragraph."""
        while True:
            text, end, _ = self._tape.peek(_PARAGRAPH).partition("\n\n")
            if end or self._tape.ended or len(text) == _PARAGRAPH:
                return ticks(self._tape.so_far()) + ticks(text)
            yield

    def _after(self) -> Waiting[str]:
        """The first visible character behind the calls on their line."""
        if self._tape.so_far().endswith("\n"):
            return ""
        while True:
            text = self._tape.peek(_LOOK)
            blank = _BLANK.match(text)
            end = blank.end() if blank else 0
            if end < len(text) or end == _LOOK or self._tape.ended:
                return text[end : end + 1].strip()
            yield
