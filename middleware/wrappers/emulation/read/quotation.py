"""Calls stand on their own: what a line of prose, inline code or a listing holds is quoted.

A call is read first, with all it does put off; what stands around it then decides whether it was
one, or text that comes out as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from middleware.wrappers.emulation.formats.raw_call import RawCall
from middleware.wrappers.emulation.formats.table import TOKEN
from middleware.wrappers.emulation.read.context import Attempt, Candidate, ticks
from middleware.wrappers.emulation.read.output import Output
from middleware.wrappers.emulation.read.tape import T, Tape, Waiting

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
        dangling = _DANGLING.search(here.tail[-_LOOK:]) is not None
        tape.keep()
        attempt = output.attempt()
        result = yield from reading
        while (before or code) and attempt.has_room and (further := (yield from self._following())):
            yield from further
        quoted = attempt.calls and (dangling or (yield from self._goes_on(before, code, attempt)))
        raw = tape.kept()
        if quoted and not output.rules.forced:
            output.forget()
            output.say(raw)
        else:
            output.commit()
        return result

    def fence(self, fence: str, step: Callable[[], Waiting[None]]) -> Waiting[bool]:
        """Take a fence with the calls in it, if there is nothing else in it."""
        tape, output = self._tape, self._output
        _, _, before = output.here.tail.rstrip().rpartition("\n")
        dropped = output.judge.dropped
        tape.keep()
        attempt = output.attempt()
        yield from self._contents(fence, step, attempt)
        raw = tape.kept()
        if attempt.own and not attempt.spoken and not self._is_example(before, attempt):
            output.commit()
            return True
        output.forget()
        taken = attempt.calls or attempt.own or output.judge.dropped > dropped
        candidate = self._fenced(raw, before, attempt) if taken and not attempt.spoken else None
        if candidate is None:
            tape.back(raw)
            return False
        if candidate.calls:
            output.propose(candidate)
        return True

    def _contents(
        self, fence: str, step: Callable[[], Waiting[None]], attempt: Attempt
    ) -> Waiting[None]:
        """Take a fence up to its end, or to what is no call."""
        tape = self._tape
        tape.pull(fence)
        while not attempt.spoken:
            yield from tape.past_blank()
            if tape.at == len(tape.text) or (yield from self._closed(fence)):
                break
            yield from step()

    def _is_example(self, before: str, attempt: Attempt) -> bool:
        """Does the line above say that the calls, all of tools that there are, are shown?"""
        find = self._output.names.find
        known = all(isinstance(call, RawCall) and find(call.name) for call in attempt.calls)
        return known and _INTRODUCED.search(before) is not None

    def _closed(self, fence: str) -> Waiting[bool]:
        if (yield from self._tape.ahead(3)) != fence[:3]:
            return False
        line = yield from fence_line(self._tape)
        return is_closing(line) and bool(self._tape.pull(line))

    def _fenced(self, raw: str, before: str, attempt: Attempt) -> Candidate | None:
        """The calls of a fence, which what is said behind it may still make an example."""
        output, calls = self._output, list[RawCall]()
        if not output.rules.forced and EXAMPLE.search(before):
            return None
        for call in attempt.calls:
            if isinstance(call, str):
                return None
            calls += call.calls if isinstance(call, Candidate) else (call,)
        exact = all(output.names.exact(call.name) for call in calls)
        marked = not any(isinstance(call, Candidate) for call in attempt.calls)
        return Candidate(calls, raw, exact, fenced=True, marked=marked)

    def _goes_on(self, before: str, code: bool, attempt: Attempt) -> Waiting[bool]:
        if code and (yield from self._ticks()) % 2:
            return True
        after = yield from self._after()
        if after.islower() or after.isdigit() or after == "`":
            return True
        if not (before or attempt.spoken) or not after:
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
