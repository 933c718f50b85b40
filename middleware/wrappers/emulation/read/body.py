"""What stands between the marks of a call: up to the end of its value, or to its end mark."""

from __future__ import annotations

import re

from middleware.wrappers.emulation.formats.bodies import JSON_START
from middleware.wrappers.emulation.formats.table import (
    BY_OPENER,
    CLOSERS,
    LONGEST,
    TOKEN,
    Format,
    any_of,
    may_grow,
    prefixes,
)
from middleware.wrappers.emulation.read.output import Output
from middleware.wrappers.emulation.read.tape import Tape, Waiting

_NAME = re.compile(r"\s*+(?:functions[.:])?(?P<name>[\w.\-]++)(?::\d++)?[^\S\n]*+")
_OVER = CLOSERS.union(BY_OPENER)
_GIVEN = ("{", "[", "(", "<", ":", "`")
_LEAD = 512
_LONGEST_WORD = len("[CALL_ID]")


def token_ahead(tape: Tape) -> Waiting[str]:
    """The token the tape stands at."""
    while True:
        text = tape.peek(LONGEST)
        token = TOKEN.match(text)
        if tape.ended or (text and not may_grow(text)):
            return token[0] if token else ""
        yield


def past_blank(tape: Tape) -> Waiting[str]:
    """White space inside a tag, also where the line ends came out as `\\n`."""
    taken = yield from tape.past_blank()
    while (yield from tape.ahead(2)) == "\\n":
        taken += tape.pull("\\n") + (yield from tape.past_blank())
    return taken


def to_closer(tape: Tape, closers: frozenset[str], taken: str = "") -> Waiting[None]:
    """Go to the closer, if nothing but white space stands before it."""
    taken += yield from past_blank(tape)
    if (yield from token_ahead(tape)) not in closers:
        tape.back(taken)


def is_closed(tape: Tape, format: Format) -> Waiting[bool]:
    """Does the call end soon?"""
    marks = any_of(format.marks)
    while True:
        text = tape.peek(_LEAD)
        if end := marks.search(text):
            return end[0] in format.closers
        if tape.ended or len(text) == _LEAD or "\n\n" in text:
            return False
        yield


class Body:
    """Reads the body of one call."""

    def __init__(self, tape: Tape, output: Output, format: Format) -> None:
        self._tape = tape
        self._output = output
        self._format = format
        self._marks = any_of(format.marks)

    def read(self) -> Waiting[tuple[str, bool]]:
        """Take it; was its end reached?"""
        ends, first = self._format.ends, self._tape.peek()
        if ends == "closer" or (ends == "either" and first not in ("{", "[")):
            return (yield from self._to_end())
        if not (yield from self._tape.calls_ahead()):
            return (yield from self._to_value())
        value = yield from self._tape.value(self._marks)
        if not value.text and self._format.closers:
            return (yield from self._to_end())
        closed = yield from self._past_strays()
        return value.text, value.closed or closed

    def _to_end(self) -> Waiting[tuple[str, bool]]:
        """Up to its end mark."""
        head = ""
        if "/>" in self._format.closers:
            head, whole = yield from up_to(self._tape, (">",))
            if head.endswith("/>") or not whole:
                return head, whole
        body, whole = yield from up_to(self._tape, self._format.closers, self._format.bounds)
        return head + body, whole

    def _to_value(self) -> Waiting[tuple[str, bool]]:
        """Up to the end of its JSON value, or to its end mark where none begins before it."""
        if (body := (yield from self._without_value())) is not None:
            return body
        start = JSON_START.search(self._tape.text, self._tape.at)
        lead = self._tape.take(start.start() if start else self._tape.at)
        value = yield from self._tape.value(self._marks)
        closed = yield from self._past_strays()
        if not closed and "```" in lead:
            yield from self._past_fence()
        return lead + value.text, value.closed or closed

    def _without_value(self) -> Waiting[tuple[str, bool] | None]:
        """The body if no JSON value begins in it."""
        while True:
            text = self._tape.peek(_LEAD)
            start = JSON_START.search(text)
            if short := self._short(text, start):
                return self._tape.pull(short[0]), short[1]
            if self._tape.ended or len(text) >= _LEAD:
                return None if start else (self._tape.pull(text), False)
            if start and _is_decided(text[start.start() :]):
                return None
            yield

    def _short(self, text: str, start: re.Match[str] | None) -> tuple[str, bool] | None:
        """A name alone, or what stands before the first mark."""
        if name := self._bare_name(text):
            return name, True
        end = self._marks.search(text, 0, start.end() + LONGEST if start else _LEAD)
        if not end or (start and start.start() < end.start()):
            return None
        closed = end[0] in self._format.closers
        return text[: end.end() if closed else end.start()], closed

    def _bare_name(self, text: str) -> str:
        """The name of a tool that nothing is given to, with what stands before it."""
        name = _NAME.match(text)
        if not name or not self._output.names.exact(name["name"]):
            return ""
        behind = text[name.end() :]
        token = TOKEN.match(behind)
        if token and token[0] in _OVER:
            return name[0]
        if not token and behind[:1] not in ("", "\n"):
            return ""
        behind = behind[token.end() if token else 0 :].lstrip()
        return name[0] if (behind or self._tape.ended) and not behind.startswith(_GIVEN) else ""

    def _past_strays(self) -> Waiting[bool]:
        """Closers too many go with the value, before its end mark or where the line ends."""
        closers = self._format.closers
        stray = (yield from self._tape.before_mark(any_of(closers))) if closers else -1
        if stray >= 0:
            self._tape.take(self._tape.at + stray)
            return True
        yield from self._tape.direct_stray()
        return False

    def _past_fence(self) -> Waiting[None]:
        """The end of a fence around the arguments goes with the closer behind it."""
        blank = yield from self._tape.past_blank()
        if (yield from self._tape.ahead(3)) == "```":
            blank += self._tape.pull("```")
        yield from to_closer(self._tape, frozenset(self._format.closers), blank)


def up_to(
    tape: Tape, closers: tuple[str, ...], bounds: tuple[str, ...] = ()
) -> Waiting[tuple[str, bool]]:
    """Take up to and with the first closer; what else bounds the body stays on the tape."""
    pieces: list[str] = []
    marks, begun = any_of((*closers, *bounds)), prefixes((*closers, *bounds))
    longest = max(map(len, begun), default=0)
    while True:
        text = tape.text
        mark = marks.search(text, tape.at)
        if mark:
            closed = mark[0] in closers
            pieces.append(tape.take(mark.end() if closed else mark.start()))
            return "".join(pieces), closed
        starts = range(max(tape.at, len(text) - longest), len(text))
        held = next((start for start in starts if text[start:] in begun), len(text))
        pieces.append(tape.take(len(text) if tape.ended else held))
        if tape.ended:
            return "".join(pieces), False
        yield


def _is_decided(value: str) -> bool:
    """Can no word in square brackets come of it any more?"""
    return value.startswith("{") or len(value) > _LONGEST_WORD
