"""The canonical block: a marker, key lines in any order, a value that ends by its own structure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from middleware.wrappers.emulation.formats import bodies
from middleware.wrappers.emulation.formats.raw_call import RawCall
from middleware.wrappers.emulation.judge.names import plain
from middleware.wrappers.emulation.language import (
    Key,
    KeyLine,
    inline_key,
    is_fence,
    key_line,
    may_begin,
)
from middleware.wrappers.emulation.read.tape import Tape, Waiting

_STRAY = re.compile(r"[ \t]*[}\])`;,\"”]+(?=\s|$|<)")
_PAIR = re.compile(r"[\s\-*•`\"]*+([^\s:：=`\"*]++)[`\"*]*+[ \t]*+[:：=][ \t]*([^\r\n]*)")
_NAME = re.compile(r"[^\s{}()\[\]<>\"'`|:]+")
_LONGEST_NAME = 200
_SHOUTED = re.compile(r"[\s*_`#>\-•\"]*(?:TOOL_|REASON)")


@dataclass(slots=True)
class Block:
    """One block while it is read."""

    tape: Tape
    parameters: Callable[[str], frozenset[str]]
    """The plain names of a tool's parameters (of all tools, for a name not known yet)."""
    name: str | None = None
    arguments: str | list[tuple[str, str]] | None = None
    whole: bool = True
    _seen: set[str] = field(default_factory=set)

    def read(self) -> Waiting[RawCall]:
        """Take the block; whatever is not part of it stays on the tape."""
        while True:
            blank = yield from self.tape.past_blank()
            key = yield from key_ahead(self.tape)
            if key is None or (key.key != "reason" and key.key in self._seen):
                break
            self._seen.add(key.key)
            self.tape.take(self.tape.at + key.end)
            yield from self._value_of(key.key)
        self.tape.back(blank)
        whole = self.whole and bool(self.arguments or not self.tape.ended)
        return RawCall(self.name or "", self.arguments, whole)

    def _value_of(self, key: Key) -> Waiting[None]:
        if key == "args":
            yield from self._args()
        elif key == "name":
            self.name = (yield from self._line_value()).strip()
        else:
            yield from _take_line(self.tape)

    def _line_value(self) -> Waiting[str]:
        """The rest of the line, up to another key on it."""
        line = yield from self.tape.line()
        cut = inline_key(line)
        return self.tape.take(self.tape.at + (cut if cut > 0 else len(line)))

    def _args(self) -> Waiting[None]:
        yield from self.tape.ahead(3)
        while self.tape.peek() in ("`", "*", " ", "\t") and not self.tape.stands_at("```"):
            self.tape.take(self.tape.at + 1)
            yield from self.tape.ahead(3)
        start = self.tape.peek()
        if start in ("", "\n", "\r"):
            yield from self._args_below()
        else:
            yield from self._args_here()

    def _args_here(self) -> Waiting[None]:
        start = self.tape.peek()
        if start in ("{", "[", '"'):
            value = yield from self.tape.value()
        elif start in ("'", "“", "｛", "［", "「"):
            value = yield from self.tape.loose_value()
        else:
            self.arguments = yield from self._line_value()
            return
        self.arguments, self.whole = value
        yield from self.tape.ahead(8)
        if stray := _STRAY.match(self.tape.text, self.tape.at):
            self.tape.take(stray.end())

    def _args_below(self) -> Waiting[None]:
        """The value on lines of its own, in a fence, or as `key: value` lines."""
        blank = yield from self.tape.past_blank()
        self.arguments = ""
        line = yield from self.tape.line()
        if line.startswith(("```", "~~~")):
            yield from _take_line(self.tape)
            yield from self.tape.past_blank()
            yield from self._args_here()
            yield from end_of_fence(self.tape)
        elif line[:1] in ("{", "[", "｛", "［") or line.startswith(('"{', "“{", "`{")):
            self.tape.take(self.tape.at + (line[0] == "`"))
            yield from self._args_here()
        else:
            self.tape.back(blank)
            yield from self._spread()

    def _spread(self) -> Waiting[None]:
        pairs: list[tuple[str, str]] = []
        known = self.parameters(self.name or "")
        while True:
            blank = yield from self.tape.past_blank()
            line = yield from self.tape.line()
            pair = _PAIR.match(line)
            if not pair or plain(pair[1]) not in known or _SHOUTED.match(line):
                break
            self.tape.take(self.tape.at + len(line))
            pairs.append((pair[1], _unquoted(pair[2].strip())))
        self.tape.back(blank)
        if pairs:
            self.arguments = pairs


def end_of_fence(tape: Tape) -> Waiting[str]:
    """Take the line of a fence that follows."""
    blank = yield from tape.past_blank()
    line = yield from tape.line()
    if is_fence(line):
        return blank + tape.pull(line)
    tape.back(blank)
    return ""


def read_short(tape: Tape) -> Waiting[list[RawCall]]:
    """A short form behind a marker: JSON that names the tool, or the name and then JSON."""
    taken = yield from _to_value(tape)
    name = "" if (yield from key_ahead(tape)) else (yield from _name(tape))
    taken += tape.pull(name)
    if name:
        taken += yield from _to_value(tape)
        if tape.peek() in ("(", "|"):
            taken += tape.take(tape.at + 1) + (yield from _to_value(tape))
    if tape.peek() != "{":
        tape.back(taken)
        return []
    value = yield from tape.value()
    yield from tape.ahead(8)
    if stray := _STRAY.match(tape.text, tape.at):
        tape.take(stray.end())
    calls = [RawCall(name, value.text)] if name else bodies.json_calls(value.text)
    return [call._replace(whole=value.closed) for call in calls] or [RawCall("", value.text)]


def _name(tape: Tape) -> Waiting[str]:
    """The whole word ahead, declared or not; left on the tape."""
    while True:
        name = _NAME.match(tape.text, tape.at)
        if tape.ended or not name or name.end() < len(tape.text):
            return name[0] if name else ""
        if len(name[0]) > _LONGEST_NAME:
            return ""
        yield


def _to_value(tape: Tape) -> Waiting[str]:
    """Blanks, a colon, and at most one line end."""
    taken = ""
    while True:
        while (start := tape.peek()) and start in (" \t:\r" if "\n" in taken else " \t:\r\n"):
            taken += tape.take(tape.at + 1)
        if tape.at < len(tape.text) or tape.ended:
            return taken
        yield


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text


def key_ahead(tape: Tape) -> Waiting[KeyLine | None]:
    """The key the tape stands before; None as soon as it can be none."""
    while True:
        line, newline, _ = tape.text[tape.at : tape.at + 80].partition("\n")
        if key := key_line(line):
            return key
        if newline or tape.ended or len(line) >= 80 or not may_begin(line):
            return None
        yield


def _take_line(tape: Tape) -> Waiting[None]:
    line = yield from tape.line()
    tape.pull(line)


def read_no_tool(tape: Tape) -> Waiting[None]:
    """Take what belongs to NO_TOOL behind its marker: the reason."""
    blank = yield from tape.past_blank()
    key = yield from key_ahead(tape)
    if key and key.key == "reason":
        yield from _take_line(tape)
        blank = yield from tape.past_blank()
    tape.back(blank)
