"""The streaming reader: a model's text in any cuts → text, thoughts and calls, as events.

Pure and linear. What comes out depends on the text alone, never on its cuts, and text leaves as
soon as it can no longer begin a call. The theory of operation is in the package's docstring: what
is held and who lets it go, which reader wins, who writes which field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from adapters.protocol import Event, FinishReason, TextDelta
from adapters.shared.calls import Calls
from adapters.shared.toolbox import Tool
from middleware.wrappers.emulation.formats.table import (
    BY_OPENER,
    HARMONY,
    LINED,
    LONGEST,
    PARTIAL,
    STOP,
    held_from,
)
from middleware.wrappers.emulation.judge.call_judge import CallJudge
from middleware.wrappers.emulation.judge.names import Names
from middleware.wrappers.emulation.language import KEYS, is_fence, is_invented, may_begin, opening
from middleware.wrappers.emulation.read.bare_calls import BareCallReader
from middleware.wrappers.emulation.read.block import Block, key_ahead, read_no_tool, read_short
from middleware.wrappers.emulation.read.echoes import Echoes, continues
from middleware.wrappers.emulation.read.format_reader import FormatReader
from middleware.wrappers.emulation.read.output import Output
from middleware.wrappers.emulation.read.quotation import Quotation, fence_line, is_closing
from middleware.wrappers.emulation.read.rules import ReadRules
from middleware.wrappers.emulation.read.tape import Tape, Waiting
from middleware.wrappers.emulation.read.thoughts import read_thought

# Characters at which plain text stops being plain: the first of any token, and what nests.
_CURIOUS = re.compile(r"[<\[\]{}\n]")
# What a line must begin with to begin a call.
_BEGINNERS = frozenset("*_`#>-•\"'“0123456789UuNnTt工{[｛~AaFf")
_NEWLINE = re.compile(r"\n")
_PIECE = 4096
_LOOK = 96
_INVENTIONS = ("TOOLRESULT", "OBSERVATION", "ENDTOOLRESULT", "CALLID", "CONTENT")
_FENCES = ("```", "~~~")
# Every call and token has one of them, whatever its format: a bracket, or words of USE_TOOL or of
# ReAct.
_HARM = re.compile(r"]~|[<◁\[{(＜［｛（=]|tool|工具|action\W+input", re.IGNORECASE)


def is_harmless(text: str) -> bool:
    """Whether a whole answer has nothing that could be a call, where none was demanded."""
    return _HARM.search(text) is None


class Reader:
    """One answer."""

    def __init__(self, tools: Sequence[Tool], calls: Calls, how: ReadRules | None = None) -> None:
        self._how = how or ReadRules()
        names = Names([tool.name for tool in tools], self._how.known)
        self._tape = Tape()
        self.judge = CallJudge(tools, names, calls, self._how.withheld)
        self._output = Output(self._how, self.judge)
        self._trained = FormatReader(self._tape, self._output)
        self._quotation = Quotation(self._tape, self._output, self._trained.following)
        self._bare_calls = BareCallReader(self._tape, self._output, self._quotation)
        self._verbatim = False
        self._echoes = Echoes(self._tape, self._output)
        self._line_start = True
        self._free = False
        self._machine = self._run()
        next(self._machine)

    @property
    def spoken(self) -> bool:
        """Something visible was said."""
        return self._output.spoken

    def passes(self, text: str) -> bool:
        """Whether it leaves as it came: nothing waits, and nothing in it can begin a call."""
        if not self._free or _CURIOUS.search(text):
            return False
        self._output.pass_plain(text)
        return True

    def feed(self, text: str) -> Iterator[Event]:
        if self.passes(text):
            if text:
                yield TextDelta(text)
            return
        for start in range(0, len(text), _PIECE):
            self._tape.feed(text[start : start + _PIECE])
            next(self._machine, None)
        yield from self._output.drain()

    def close(self, reason: FinishReason = "stop") -> Iterator[Event]:
        """The text has ended, for this reason."""
        self.judge.reason = reason
        self._tape.ended = True
        next(self._machine, None)
        yield from self._output.drain()

    def _run(self) -> Waiting[None]:
        if self._how.trained:
            if self._how.thoughts:
                yield from read_thought(self._tape, self._output, self._how.hold)
            yield from self._first_line()
        while not (self._tape.ended and self._tape.at == len(self._tape.text)):
            if self._line_start:
                yield from self._begin_line()
            else:
                yield from self._go_on()
        self._output.finish()

    def _first_line(self) -> Waiting[None]:
        """What only the first line of an answer can be."""
        self._output.hold((yield from self._tape.past_blank()))
        if (yield from self._to_recipient()):
            yield from self._trained.message("to=")
        elif self._how.bare:
            yield from self._bare_calls.named()

    def _to_recipient(self) -> Waiting[bool]:
        while "to=".startswith(self._tape.peek(3)) and not self._tape.ended:
            yield
        return self._tape.stands_at("to=")

    def _go_on(self) -> Waiting[None]:
        """The rest of a line that is text, up to the next mark."""
        tape, output = self._tape, self._output
        stop = STOP if self._how.trained and not self._verbatim else _NEWLINE
        mark = stop.search(tape.text, tape.at)
        begun = self._begun(mark)
        if mark and begun > mark.start():
            output.say(tape.take(mark.start()))
            if mark[0] == "\n":
                output.hold(tape.take(mark.end()))
                self._line_start = True
            else:
                yield from self._token(mark[0])
                self._line_start = output.behind_call
            return
        output.say(tape.take(begun))
        if not tape.ended:
            self._free = tape.at == len(tape.text) and output.plain
            yield
            self._free = False

    def _token(self, token: str) -> Waiting[None]:
        reading = self._trained.token(token)
        if token in BY_OPENER or (token in HARMONY and self._output.here.line):
            reading = self._quotation.line(reading)
        yield from reading

    def _begun(self, mark: re.Match[str] | None) -> int:
        """Where a token may have begun that is not whole yet, also before its own line end."""
        tape = self._tape
        whole = mark is not None and not (
            tape.text.endswith(LINED, tape.at, mark.start())
            or tape.text[mark.start() : mark.start() + LONGEST] in PARTIAL
        )
        if whole or tape.ended or self._verbatim or not self._how.trained:
            return len(tape.text)
        return held_from(tape.text, tape.at)

    def _begin_line(self) -> Waiting[None]:
        """The beginning of a line, where blocks begin."""
        tape = self._tape
        self._output.hold(tape.blank())
        if tape.at == len(tape.text):
            if not tape.ended:
                yield
            return
        listed = bool(self._output.fence_line) and not self._output.trying
        self._verbatim = listed or tape.peek() == ">"
        if self._verbatim:
            yield from self._quoted_line()
            return
        line, newline, _ = tape.peek(_LOOK).partition("\n")
        yield from self._line(line, bool(newline) or tape.ended or len(line) >= _LOOK)

    def _line(self, line: str, complete: bool) -> Waiting[None]:
        if self._cut_key(line) or (yield from self._cut_invention(line, complete)):
            return
        if not (self._how.prompted and (yield from self._echoes.take(line, complete))):
            yield from self._decide(line, complete)

    def _decide(self, line: str, complete: bool) -> Waiting[None]:
        what = opening(line, complete) if line[0] in _BEGINNERS else None
        if what is None or what.kind == "text" or line.startswith(_FENCES):
            yield from self._other_line(line, complete)
        elif what.kind == "wait":
            yield
        else:
            yield from self._quotation.line(self._block(what.kind, what.end))

    def _cut_key(self, line: str) -> bool:
        """The answer ran out of tokens inside a key or a marker."""
        if not (self._tape.ended and self._output.cut):
            return False
        if not (self._output.behind_call or line.startswith(("USE_", "TOOL_"))):
            return False
        if not may_begin(line, (*KEYS, "USETOOL", "NOTOOL")):
            return False
        self._tape.take(len(self._tape.text))
        return True

    def _cut_invention(self, line: str, complete: bool) -> Waiting[bool]:
        """A model that writes its own result behind its call: drop the rest."""
        if self._output.trying or not self._output.behind_call:
            return False
        if not is_invented(line) and not (self._how.prompted and continues(line)):
            if not complete and may_begin(line, _INVENTIONS):
                yield
                return True
            return False
        yield from self._tape.drop()
        return True

    def _other_line(self, line: str, complete: bool) -> Waiting[None]:
        """A line that begins no block: a fence, JSON, ReAct, or text."""
        if line.startswith(_FENCES) and not self._output.trying:
            if not complete:
                yield
                return
            if is_fence(line):
                yield from self._fence()
                return
        if self._how.trained and self._how.bare and (yield from self._bare(line)):
            self._line_start = True
            return
        self._output.release()
        self._line_start = False

    def _quoted_line(self) -> Waiting[None]:
        """A line behind `>`, or of a listing, which a fence ends."""
        fence = self._output.fence_line[:3]
        if fence and (yield from self._tape.ahead(3)) == fence:
            line = yield from fence_line(self._tape)
            if is_closing(line):
                self._verbatim = False
                self._output.end_fence()
                self._output.say(self._tape.pull(line.rstrip()))
        self._line_start = False

    def _fence(self) -> Waiting[None]:
        """A fence: calls alone in it are calls, and it goes with them; all else is a listing."""
        line = yield from fence_line(self._tape)
        self._output.begin_fence(line)
        if (yield from self._quotation.fence(line, self._in_fence)):
            self._line_start = True
            self._output.end_fence()
        else:
            self._output.say(self._tape.pull(line.rstrip()))
            self._verbatim, self._line_start = True, False

    def _in_fence(self) -> Waiting[None]:
        yield from self._begin_line() if self._line_start else self._go_on()

    def _bare(self, line: str) -> Waiting[bool]:
        if self._output.context.code and self._output.here.code:
            return False
        for firsts, taken in (
            ("{[｛f", self._bare_calls.json),
            ("AaTtFf*#_>", self._bare_calls.headed),
            ("Aa*", self._bare_calls.react),
        ):
            if line[0] in firsts and (yield from taken()):
                return True
        return line[0] in self._output.names.initials and (yield from self._bare_calls.python())

    def _block(self, kind: str, end: int) -> Waiting[None]:
        """A marker or a name line: take the block, unless there is none behind the marker."""
        tape = self._tape
        marker = tape.take(tape.at + end)
        self._output.begin_block()
        if kind == "no":
            yield from read_no_tool(tape)
            return
        if marker and (short := (yield from read_short(tape))):
            for call in short:
                self._output.accept(call)
            self._line_start = True
            return
        blank = yield from tape.past_blank()
        if marker and (yield from key_ahead(tape)) is None:
            if tape.ended and self._output.cut and len(tape.peek(_LOOK)) < _LOOK:
                self.judge.drop()
                tape.take(len(tape.text))
                return
            tape.back(blank)
            self._output.say(marker)
            self._line_start = False
            return
        self._output.accept((yield from Block(tape, self.judge.parameters).read()))
        self._line_start = True
