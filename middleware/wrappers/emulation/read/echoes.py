"""Lines of our own prompt and of the frames around results, where a model repeats them.

They are no text for the user. What stands between them is, and so are lines in a fence or behind
a quotation mark, and sentences that only speak of them.
"""

from __future__ import annotations

import re

from middleware.wrappers.emulation.ask.prompt import OWN_LINES
from middleware.wrappers.emulation.read.output import Output
from middleware.wrappers.emulation.read.tape import Tape, Waiting

_KEY = r"(?:TOOL_NAME|CALL_ID|CONTENT):"
# Bounded, so that what is matched is shorter than what a line is known by.
_LINE_END = r"[ \t\r]{0,8}(?:\n|\Z)"
_NEXT = rf"(?:{_LINE_END}|[ \t]{{1,8}}(?={_KEY}))"
# A mark is a whole line, or another one follows on its line.
_MARK = re.compile(r"(?:(?:END_)?TOOL_RESULT:?|CALL_ID:[ \t]{0,8}[^\s:]{0,64})" + _NEXT)
# These are ordinary words, so they count behind another mark only.
_NAME = r"TOOL_NAME:[^\n]{0,70}?" + _NEXT
_INNER = re.compile(rf"(?P<content>CONTENT:)[ \t\r]*\n?|{_NAME}|END_TOOL_RESULT\b")
_FIRST = re.compile(rf"CONTENT:{_LINE_END}")
_LAST = re.compile(r"[ \t]*\bEND_TOOL_RESULT[ \t\r]*\n?\Z")
_WORDS = ("END_TOOL_RESULT", "TOOL_RESULT", "CALL_ID:", "CONTENT:", "TOOL_NAME:")
_HEADS = re.compile("CALL_ID:|CONTENT:")
_LONGEST_HEAD = len("  \r\n  CALL_ID:")
_INITIALS = frozenset(word[0] for word in (*_WORDS, *OWN_LINES))


def continues(line: str) -> bool:
    """Does a line go on with a result, behind its first two lines?"""
    return _HEADS.match(line) is not None


class Echoes:
    """Takes what the model repeats at the beginning of a line."""

    def __init__(self, tape: Tape, output: Output) -> None:
        self._tape = tape
        self._output = output
        self._head = False
        """The last thing read was a mark."""
        self._framed = False
        """A frame was begun and not ended: its last mark may stand behind its text."""

    def take(self, line: str, complete: bool) -> Waiting[bool]:
        """Take a line, or a mark at its beginning; also where that has to be waited for."""
        if self._output.trying:
            return False
        if line[:1] in _INITIALS and (yield from self._own(line, complete)):
            return True
        self._head = False
        return self._framed and (yield from self._last_line())

    def _own(self, line: str, complete: bool) -> Waiting[bool]:
        if not complete and _may_be(line):
            yield
            return True
        if line.strip() in OWN_LINES:
            self._drop((yield from self._tape.line()))
            return True
        if line.startswith("TOOL_NAME:") and (yield from self._goes_on()):
            self._head = True
        mark = self._mark()
        if not mark:
            return False
        self._head = self._framed = not mark[0].startswith("END_")
        if mark.lastgroup == "content":
            self._head = False
        self._drop(mark[0])
        return True

    def _mark(self) -> re.Match[str] | None:
        text, at = self._tape.text, self._tape.at
        if mark := _MARK.match(text, at):
            return mark
        if self._head or self._framed:
            return _INNER.match(text, at) if self._head else None
        return None if self._output.spoken else _FIRST.match(text, at)

    def _last_line(self) -> Waiting[bool]:
        """A line of the result's text with the last mark behind it."""
        line = yield from self._tape.line()
        last = _LAST.search(line)
        if last:
            self._framed = False
            self._output.release()
            self._output.say(line[: last.start()])
            self._drop(line)
            self._output.hold("\n" if line.endswith("\n") else "")
        return last is not None

    def _goes_on(self) -> Waiting[bool]:
        """Does a frame go on behind the line with the name of its tool?"""
        line = yield from self._tape.line()
        text = yield from self._tape.ahead(len(line) + _LONGEST_HEAD)
        return continues(text[len(line) :].lstrip())

    def _drop(self, text: str) -> None:
        self._tape.pull(text)
        told = "the model repeated lines of the prompt, which were left out"
        self._output.judge.note("prompt_lines_dropped", told)


def _may_be(line: str) -> bool:
    words = (*_WORDS, *OWN_LINES)
    return any(word.startswith(line) or line.startswith(word) for word in words)
