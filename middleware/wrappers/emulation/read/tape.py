"""The model's text as a tape that is read once, and the readers of one JSON-like value on it.

Everything here that may have to wait is a generator that yields while the tape has run out. What
it returns depends on the text alone, so every cut of the text gives the same result.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from itertools import islice
from typing import NamedTuple, TypeVar

from middleware.wrappers.emulation.formats.table import KNOWN, LONGEST, PARTIAL, held_from
from middleware.wrappers.emulation.judge import lenient_json as lenient
from middleware.wrappers.emulation.judge.strict_json import parse_strict
from middleware.wrappers.emulation.language import is_barrier

T = TypeVar("T")
Waiting = Generator[None, None, T]

LONGEST_LINE = 8192
_PATIENCE = 8
"""How often a value that never ends may be read to the end of the text."""
# What matters in a value: inside of a string or not, and where a token may end it.
_SIGNS: Mapping[tuple[bool, bool], re.Pattern[str]] = {
    (inside, wary): re.compile(f"{KNOWN.pattern}|{signs}" if wary else signs)
    for inside, signs in ((False, r'["{}\[\]\n]'), (True, r'["\\\n]'))
    for wary in (False, True)
}
_STEPS: Mapping[str, int] = {"{": 1, "[": 1, "}": -1, "]": -1, '"': 0}
_BLANK = re.compile(r"\s*")
_NEWLINE = re.compile(r"\n")
_MOST_LINES = 1 << 13
"""In which the end of a value that is not closed is looked for, once it is read whole."""
_CALLS = re.compile(r"\[?\s*[A-Za-z_][\w.\-]*\(")
_CALLS_BEGUN = re.compile(r"\[?\s*(?:[A-Za-z_][\w.\-]*)?")
_BRACKET = re.compile(r"[)\]]")
_LONGEST_NAME = 256
_EAGER = 32
"""How many brackets are tried one by one as the end of calls; later ones at growing distances."""
_LINE_START = 48
_STRAY = re.compile(r"[\s}\])`;,\"”]*+[^<\[\n]*+")
_DIRECT = re.compile(r"[}\])]*+")
_MOST_STRAY = 64


class Tape:
    """What was fed and not yet read."""

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.ended = False
        self._runaways = 0
        self._kept: list[str] | None = None
        """What was taken since `keep`."""

    def feed(self, piece: str) -> None:
        self.text = self.text[self.at :] + piece
        self.at = 0

    def back(self, text: str) -> None:
        """Put text that was taken in front again."""
        if self._kept is not None:
            _drop_end(self._kept, len(text))
        if self.text.endswith(text, 0, self.at):
            self.at -= len(text)
        else:
            self.text = text + self.text[self.at :]
            self.at = 0

    def peek(self, count: int = 1) -> str:
        """The next characters as far as they are there, left on the tape."""
        return self.text[self.at : self.at + count]

    def stands_at(self, word: str) -> bool:
        return self.text.startswith(word, self.at)

    def take(self, end: int) -> str:
        taken, self.at = self.text[self.at : end], end
        if self._kept is not None:
            self._kept.append(taken)
        return taken

    def keep(self) -> None:
        """Remember what is taken from here on."""
        self._kept = []

    def so_far(self) -> str:
        return "".join(self._kept or ())

    def kept(self) -> str:
        """What was taken since `keep`, which is over."""
        kept, self._kept = self.so_far(), None
        return kept

    def pull(self, text: str) -> str:
        """Take this text, which the tape is known to go on with."""
        return self.take(self.at + len(text))

    def drop(self) -> Waiting[None]:
        """Take everything up to the end of the text."""
        while not self.ended:
            self.take(len(self.text))
            yield
        self.take(len(self.text))

    def blank(self) -> str:
        """Take the white space that is there."""
        blank = _BLANK.match(self.text, self.at)
        return self.take(blank.end()) if blank else ""

    def past_blank(self) -> Waiting[str]:
        """Take all white space up to what follows it."""
        taken = self.blank()
        while self.at == len(self.text) and not self.ended:
            yield
            taken += self.blank()
        return taken

    def line(self) -> Waiting[str]:
        """The next line with its end, left on the tape."""
        searched = 0
        while True:
            end = self.text.find("\n", self.at + searched)
            searched = len(self.text) - self.at
            if end >= 0 or self.ended or searched >= LONGEST_LINE:
                stop = end + 1 if end >= 0 else len(self.text)
                return self.text[self.at : min(stop, self.at + LONGEST_LINE)]
            yield

    def ahead(self, count: int) -> Waiting[str]:
        """The next `count` characters, or fewer at the end of the text; left on the tape."""
        while len(self.text) - self.at < count and not self.ended:
            yield
        return self.text[self.at : self.at + count]

    def calls_ahead(self) -> Waiting[bool]:
        """Do calls as Python writes them follow?"""
        while True:
            text = self.text[self.at : self.at + _LONGEST_NAME]
            if _CALLS.match(text):
                return True
            if self.ended or len(text) == _LONGEST_NAME or not _CALLS_BEGUN.fullmatch(text):
                return False
            yield

    def value(self, marks: re.Pattern[str] | None = None) -> Waiting[Value]:
        """Take one JSON-like value, where need be up to the line that cannot be part of it.

        In a call it ends before a token; a broken one before the first mark even in a string.
        """
        if (yield from self.calls_ahead()):
            calls = yield from self.calls()
            if calls.text or not self.stands_at("["):
                return self._before(marks, calls)
        taken, closed = yield from self._balanced(tokens=marks is not None)
        if closed and _is_strict(taken):
            return Value(taken, True)
        if marks is None:
            return (yield from self.loose_value(taken, closed))
        if closed and (yield from self.before_mark(marks)) >= 0:
            return (yield from self.loose_value(taken, closed))
        whole, at_token = taken, KNOWN.match(self.text, self.at) is not None
        taken, _ = self._before(marks, Value(taken, closed))
        bounded = len(taken) < len(whole) or (at_token and not closed)
        return (yield from self.loose_value(taken, closed and not bounded, bounded))

    def _before(self, marks: re.Pattern[str] | None, value: Value) -> Value:
        """The part of a value before the first mark in it; the rest goes back."""
        mark = marks.search(value.text) if marks else None
        if not mark:
            return value
        self._runaways += 1
        self.back(value.text[mark.start() :])
        return Value(value.text[: mark.start()], False)

    def before_mark(self, marks: re.Pattern[str]) -> Waiting[int]:
        """How far one of the marks is, behind no more than closers and a few words; -1: farther."""
        while True:
            stray = _STRAY.match(self.text, self.at, self.at + _MOST_STRAY)
            end = stray.end() if stray else self.at
            if marks.match(self.text, end):
                return end - self.at
            rest = self.text[end : end + LONGEST]
            if self.ended or end - self.at == _MOST_STRAY or (rest and rest not in PARTIAL):
                return -1
            yield

    def direct_stray(self) -> Waiting[str]:
        """Take brackets too many behind a value, where a blank or the end follows."""
        while True:
            stray = _DIRECT.match(self.text, self.at, self.at + _MOST_STRAY)
            end = stray.end() if stray else self.at
            if end < len(self.text) or self.ended or end - self.at >= _MOST_STRAY:
                break
            yield
        alone = end == len(self.text) or self.text[end].isspace()
        return self.take(end) if alone else ""

    def calls(self, longest: int = 1 << 15) -> Waiting[Value]:
        """Take calls as Python writes them; an empty value: what follows cannot be read so."""
        tries, tried, searched = 0, 0, 0
        while self._runaways <= _PATIENCE:
            for bracket in _BRACKET.finditer(self.text, self.at + searched, self.at + longest):
                end = bracket.end() - self.at
                if tries < _EAGER or end >= tried * 3 // 2:
                    tries, tried = tries + 1, end
                    if (value := self._calls_in(end)) is not None:
                        return value
            searched = len(self.text) - self.at
            if self.ended or searched >= longest:
                self._runaways += 1
                break
            yield
        return Value("", False)

    def _calls_in(self, end: int) -> Value | None:
        """Take the calls, if they end in the first characters; None: they may end behind them."""
        try:
            reading = lenient.read_calls(self.text[self.at : self.at + end])
        except lenient.Unended:
            return None
        except (ValueError, RecursionError):
            return Value("", False)
        return Value(self.take(self.at + reading.end), True) if reading.closed else None

    def _balanced(self, tokens: bool) -> Waiting[tuple[str, bool]]:
        """Take what stands between an opener and its closer, strings respected."""
        pieces: list[str] = []
        depth, inside = 0, False
        while True:
            text, sign = yield from self._next_sign(inside, tokens)
            pieces.append(text)
            if len(sign) != 1:
                return "".join(pieces), False
            pieces.append(self.take(self.at + 1))
            if sign == "\\":
                pieces.append((yield from self._escaped()))
            elif sign == "\n":
                if (yield from self._breaks(inside)):
                    return "".join(pieces), False
            else:
                inside ^= sign == '"'
                depth += _STEPS[sign]
                if depth <= 0 and not inside:
                    return "".join(pieces), True

    def _next_sign(self, inside: bool, tokens: bool) -> Waiting[tuple[str, str]]:
        """Take what stands before the next sign or token; there is none: the text has ended."""
        pieces: list[str] = []
        while True:
            wary = tokens and (not inside or self._runaways > _PATIENCE)
            sign = _SIGNS[inside, wary].search(self.text, self.at)
            if sign and not (wary and self._is_begun(sign)):
                pieces.append(self.take(sign.start()))
                return "".join(pieces), sign[0]
            end = held_from(self.text, self.at) if wary and not self.ended else len(self.text)
            pieces.append(self.take(end))
            if self.ended:
                self._runaways += 1
                return "".join(pieces), ""
            yield

    def _is_begun(self, sign: re.Match[str]) -> bool:
        """May a token begin there that is not whole yet?"""
        near = not self.ended and len(self.text) - sign.start() < LONGEST
        return near and held_from(self.text, self.at) <= sign.start()

    def _breaks(self, inside: bool) -> Waiting[bool]:
        """Does the value break off here? It may go on over a line end, but not for ever."""
        if inside or self._runaways > _PATIENCE:
            return self._runaways > _PATIENCE
        return (yield from self._barrier())

    def _escaped(self) -> Waiting[str]:
        yield from self.ahead(1)
        return self.take(min(self.at + 1, len(self.text)))

    def _barrier(self, quoted: bool = False) -> Waiting[bool]:
        start = yield from self.ahead(_LINE_START)
        return is_barrier(start.split("\n", 1)[0], quoted)

    def loose_value(
        self, taken: str = "", closed: bool = False, bounded: bool = False
    ) -> Waiting[Value]:
        """Take line by line until the lenient reader finds an end, or a barrier does."""
        first = taken if closed or bounded else taken.split("\n", 1)[0]
        taken, end = _up_to_barrier(taken)
        self.back(end)
        tried = 0
        while True:
            stop = bounded or bool(end) or (yield from self._stops(taken))
            if stop or len(taken) >= tried * 3 // 2:
                tried = len(taken)
                reading = _try(taken)
                if reading and (reading.closed or stop):
                    self.back(taken[reading.end :])
                    return Value(taken[: reading.end], reading.closed)
            if stop:
                self.back(taken[len(first) :])
                return Value(first, closed)
            line = yield from self.line()
            taken += self.pull(line)

    def _stops(self, taken: str) -> Waiting[bool]:
        """Is there no more to be taken: at the end, or before a line of the protocol?"""
        if self.ended and self.at == len(self.text):
            return True
        if not taken.endswith("\n"):
            return False
        return self._runaways > _PATIENCE or (yield from self._barrier(quoted=True))


def _drop_end(pieces: list[str], count: int) -> None:
    while pieces and count >= len(pieces[-1]):
        count -= len(pieces.pop())
    if count and pieces:
        pieces[-1] = pieces[-1][:-count]


class Value(NamedTuple):
    text: str
    closed: bool
    """False: the text or the block ended before the value did."""


def _is_strict(text: str) -> bool:
    try:
        parse_strict(text)
    except ValueError:
        return False
    return True


def _try(text: str) -> lenient.Reading | None:
    try:
        return lenient.read(text)
    except (ValueError, RecursionError):
        return None


def _up_to_barrier(text: str) -> tuple[str, str]:
    """Cut before the first line that cannot be part of a value."""
    for end in islice(_NEWLINE.finditer(text), _MOST_LINES):
        at = end.end()
        if is_barrier(text[at : at + _LINE_START].split("\n", 1)[0], True):
            return text[:at], text[at:]
    return text, ""
