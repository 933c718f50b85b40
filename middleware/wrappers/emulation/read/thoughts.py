"""The thought an answer begins with, marked or begun by the model's own template.

Tags, and where a thought ends, are those of `adapters/shared/think_tags.py`. What a reader of calls
adds: the tags of formats that have one, a call inside a thought that never ends, and a thought
without its opener, which is looked for in the first `hold` characters.
"""

from __future__ import annotations

import re

from adapters.protocol import ReasoningDelta, TextDelta
from adapters.shared.think_tags import Splitter, opener_of
from middleware.wrappers.emulation.formats.table import (
    BY_OPENER,
    LONGEST,
    THOUGHTS,
    TOKEN,
    held_from,
    prefixes,
)
from middleware.wrappers.emulation.read.output import Output
from middleware.wrappers.emulation.read.tape import Tape, Waiting

# The end of a thought that a template began; not where it is quoted. Apriel's has no opener.
_ENDINGS = (*dict.fromkeys(THOUGHTS.values()), "[BEGIN FINAL RESPONSE]")
_BEGUN = prefixes(_ENDINGS)
_CLOSER = re.compile(r"(?<![`\"'])(?:" + "|".join(map(re.escape, _ENDINGS)) + ")")
_MARKER = re.compile(
    r"^[ \t*_`#>\-•\"]*(?:(?:USE|NO)[ _-]?TOOL[*_`:： \t]*\r?\n|TOOL[ _-]?NAME[*_`\" \t]*[:：=])",
    re.IGNORECASE | re.MULTILINE,
)
_CALL = re.compile(
    "|".join(re.escape(opener) for opener in sorted(BY_OPENER, key=len, reverse=True))
)
_LONGEST = max(LONGEST, *map(len, (*THOUGHTS, *_ENDINGS)))
_LONGEST_CALL = 1 << 16


def read_thought(tape: Tape, output: Output, hold: int) -> Waiting[None]:
    """Take the thought an answer begins with, if it begins with one."""
    blank = yield from tape.past_blank()
    while True:
        opener = opener_of(tape.peek(_LONGEST), THOUGHTS)
        if opener:
            tape.pull(opener)
            yield from _think(tape, output, THOUGHTS[opener])
            break
        if opener is None and not tape.ended:
            yield
            continue
        if (yield from _unopened(tape, output, hold)):
            break
        output.hold(blank)
        return
    yield from tape.past_blank()


def _unopened(tape: Tape, output: Output, hold: int) -> Waiting[bool]:
    """A template may have opened the thought: look that far for its end, before any marker."""
    seen = 0
    while hold and tape.peek() not in ("{", "[", "`"):
        text, first = tape.text, tape.at
        start = max(first, first + seen - _LONGEST)
        closer = _CLOSER.search(text, start, first + hold + _LONGEST)
        mark = _mark(tape, start)
        if closer and closer.start() < first + hold and not 0 <= mark < closer.start():
            output.think(tape.take(closer.start()))
            tape.take(closer.end())
            return True
        if closer or mark >= 0 or tape.ended or _is_past(text[first:], hold):
            break
        seen = len(text) - first
        yield
    return False


def _mark(tape: Tape, start: int) -> int:
    """Where the first marker of a call or another token begins; -1: there is none."""
    text = tape.text
    marks = [_MARKER.search(text, text.rfind("\n", tape.at, start) + 1 or tape.at)]
    token = TOKEN.search(text, start)
    if token and (tape.ended or text[token.start() : token.start() + _LONGEST] not in _BEGUN):
        marks.append(token)
    return min((mark.start() for mark in marks if mark), default=-1)


def _is_past(text: str, hold: int) -> bool:
    """Can no end of a thought begin in the first characters any more?"""
    starts = range(max(0, len(text) - _LONGEST), hold)
    return len(text) >= hold and not any(text[start:] in _BEGUN for start in starts)


def _think(tape: Tape, output: Output, closer: str) -> Waiting[None]:
    """Pass the thought on up to its closer; a call in it waits until the closer comes."""
    splitter, thought = Splitter(place="thought", closers=(closer,)), _Thought(output)
    while True:
        for event in splitter.feed(tape.take(len(tape.text))):
            if isinstance(event, ReasoningDelta):
                thought.add(event.text)
            elif isinstance(event, TextDelta):
                tape.back(event.text)
        if tape.ended or splitter.place != "thought":
            break
        yield
    if splitter.place == "thought":
        thought.add(splitter.held)
        if not output.cut:
            tape.back(thought.take_call())  # it never stopped thinking: its call is its answer
    thought.release()


class _Thought:
    """A marked thought while it comes: all of it from a call on is held."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._begun = ""
        """What may become the opener of a call."""
        self._call: list[str] = []
        self._room = _LONGEST_CALL

    def add(self, text: str) -> None:
        if self._room <= 0:
            self._output.think(text)
            return
        if not self._call:
            text = self._begun + text
            opener = _CALL.search(text)
            start = opener.start() if opener else held_from(text, 0)
            self._output.think(text[:start])
            self._begun, text = ("", text[start:]) if opener else (text[start:], "")
        if text:
            self._call.append(text)
            self._room -= len(text)
            if self._room <= 0:  # the thought goes on very far behind it
                self.release()

    def take_call(self) -> str:
        call = "".join(self._call)
        self._call.clear()
        return call

    def release(self) -> None:
        self._output.think(self._begun + self.take_call())
        self._begun = ""
