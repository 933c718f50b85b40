"""Calls without a sentinel: JSON or Python that names a tool, Functionary's two lines, ReAct."""

from __future__ import annotations

import re

from middleware.wrappers.emulation.formats import bodies
from middleware.wrappers.emulation.formats.raw_call import RawCall
from middleware.wrappers.emulation.formats.synonyms import ARGUMENTS, BESIDE, HOLDERS, NAMES
from middleware.wrappers.emulation.judge.arguments import lone_parameter
from middleware.wrappers.emulation.language import beginning
from middleware.wrappers.emulation.read.block import end_of_fence
from middleware.wrappers.emulation.read.context import Candidate
from middleware.wrappers.emulation.read.output import Output
from middleware.wrappers.emulation.read.quotation import Quotation
from middleware.wrappers.emulation.read.tape import Tape, Waiting

_LEAD = 256
_KEYS = frozenset((*NAMES, *ARGUMENTS, *HOLDERS, *BESIDE))
_FIRST = re.compile(
    r"(?:functools)?[{\[｛][\s{\[]{0,64}"
    r"(?:[\"'“]?(?P<key>\w+)[\"'”]?\s*[:：]|(?P<call>[A-Za-z_][\w.\-]*)\s*\()"
)
_UNDECIDED = re.compile(r"(?:functools)?[{\[｛]?[\s{\[]{0,64}[\"'“]?[\w.\-]*[\"'”]?\s*")
_PREFIX = "functools"
# Words above JSON that say that it is a call: Command R's, and what other models make of it.
_HEADS = ("action", "tool call", "function call")
_DECO, _BEHIND = r"[ \t*#_>]*+", r"s?[ \t*_]*+:[ \t*_]*+\s*+"
_HEADED = re.compile(
    rf"(?P<head>{_DECO}(?:{'|'.join(_HEADS).replace(' ', '[ _]')}){_BEHIND})"
    r"(?:```\w*[ \t]*\r?\n\s*)?(?=[{\[])",
    re.IGNORECASE,
)
_HEAD_BEGUN = re.compile(
    _DECO + "(?:" + "|".join(beginning(word, r"s?[ \t*_]*+(?::[ \t*_]*+\s*+(?:`{1,3}\w*\s*)?)?")
                            for word in _HEADS) + ")",
    re.IGNORECASE,
)  # fmt: skip
_FENCE = re.compile(r"```\w*[ \t]*\r?\n\s*")
_NAME = re.compile(r"[A-Za-z_][\w.\-]*")
_LONGEST_CALL = 4096
_ACTION = re.compile(r"[ \t*]*Action[*]*\s*:[ \t*]*(?P<name>[^\r\n]*?)[\s*]*\Z", re.IGNORECASE)
_INPUT = re.compile(r"[ \t*]*Action Input[*]*\s*:[ \t]*", re.IGNORECASE)
_ACTION_BEGUN = re.compile(
    r"[ \t*]*+" + beginning("Action", r"[*]*+\s*+(?::[^\n]*+)?"), re.IGNORECASE
)
_INPUT_BEGUN = re.compile(r"[ \t*]*+" + beginning("Action Input", r"[*]*+\s*+"), re.IGNORECASE)
_NEXT = re.compile(r"[ \t*]*(?:Observation|Action)[*]*\s*:", re.IGNORECASE)
_STARS = re.compile(r"\A\*+\s*(?=\{)")


class BareCallReader:
    """Reads what a line may begin; each method says whether it took it."""

    def __init__(self, tape: Tape, output: Output, quotation: Quotation) -> None:
        self._tape = tape
        self._output = output
        self._quotation = quotation

    def headed(self) -> Waiting[bool]:
        """`Action:` or `Tool call:` above JSON, perhaps in a fence."""
        head = yield from self._head()
        if not head:
            return False
        self._tape.pull(head)
        fence = _FENCE.match(self._tape.text, self._tape.at)
        return (yield from self.json(head, self._tape.pull(fence[0]) if fence else ""))

    def json(self, head: str = "", fence: str = "") -> Waiting[bool]:
        """An object or a list that begins like a call: held until its first key rules that out."""
        likely = not self._output.nested and (yield from self._likely())
        self._tape.back(head + fence)
        if likely:
            yield from self._quotation.line(self._object(head + fence, bool(fence)))
        return likely

    def _object(self, head: str, fenced: bool) -> Waiting[None]:
        self._tape.pull(head)
        if self._tape.stands_at(_PREFIX):
            head += self._tape.pull(_PREFIX)
        value = yield from self._tape.value()
        calls = self._calls(value.text)
        if not calls and self._cut(value.text, value.closed):
            self._output.judge.drop()
        elif not calls:
            self._output.release()
            self._output.say(head + value.text)
        else:
            raw = head + value.text + (yield from self._tape.direct_stray())
            if fenced:
                raw += yield from end_of_fence(self._tape)
            exact = all(self._output.names.exact(call.name) for call in calls)
            self._output.propose(Candidate(calls, raw, exact, fenced))
            yield from self._separator()

    def _separator(self) -> Waiting[None]:
        """What stands between two objects that are not in a list."""
        between = yield from self._tape.past_blank()
        if (yield from self._tape.ahead(1)) in (";", ","):
            between += self._tape.take(self._tape.at + 1) + (yield from self._tape.past_blank())
            if (yield from self._tape.ahead(1)) in ("{", "["):
                self._output.hold(between)
                return
        self._tape.back(between)

    def _head(self) -> Waiting[str]:
        """The words above an object or a list that may be one of calls."""
        while True:
            text = self._tape.text[self._tape.at : self._tape.at + _LEAD]
            if headed := _HEADED.match(text):
                return headed["head"]
            if self._tape.ended or len(text) >= _LEAD or not _HEAD_BEGUN.fullmatch(text):
                return ""
            yield

    def python(self) -> Waiting[bool]:
        """A call of a declared tool as Python writes it, where nothing else was said."""
        fence = self._output.fence_line
        if self._output.spoken or (fence and "tool" not in fence):
            return False
        if not (yield from self._names_a_tool()):
            return False
        return (yield from self._quotation.line(self._python()))

    def _python(self) -> Waiting[bool]:
        text, _ = yield from self._tape.calls(_LONGEST_CALL)
        if not text:
            return False
        self._output.propose(Candidate(bodies.python_calls(text), text, exact=False))
        return True

    def _names_a_tool(self) -> Waiting[bool]:
        """Does a declared name with a bracket follow?"""
        names = self._output.names
        while True:
            text = self._tape.text[self._tape.at : self._tape.at + _LEAD]
            name = _NAME.match(text)
            if not name:
                return False
            if behind := text[name.end() :][:1]:
                return behind == "(" and names.exact(name[0])
            if self._tape.ended or not any(tool.startswith(name[0]) for tool in names.declared):
                return False
            yield

    def _likely(self) -> Waiting[bool]:
        while True:
            text = self._tape.text[self._tape.at : self._tape.at + _LEAD]
            first = _FIRST.match(text)
            if first:
                if first["call"]:
                    return self._output.names.exact(first["call"])
                return first["key"] in _KEYS
            undecided = _UNDECIDED.match(text)
            grows = undecided is not None and undecided.end() == len(text) < _LEAD
            if self._tape.ended or not (grows or _PREFIX.startswith(text)):
                return False
            yield

    def _calls(self, text: str) -> list[RawCall]:
        """The calls in it, if every one names a declared tool."""
        if re.match(r"\[\s*[A-Za-z_][\w.\-]*\s*\(", text):
            calls = bodies.python_calls(text)
        else:
            try:
                calls = list(bodies.calls_in(bodies.parse(text)))
            except ValueError:
                calls = []
        names = self._output.names
        # Where the model can be asked, a call of a tool that is not there is a call too.
        asks = self._output.rules.prose and all(map(_is_given, calls))
        return calls if asks or all(names.find(call.name) for call in calls) else []

    def _cut(self, text: str, closed: bool) -> bool:
        """Was it a call to be, when the answer ran out of tokens?"""
        names = self._output.names.declared
        return not closed and self._output.cut and any(name in text for name in names)

    def named(self) -> Waiting[bool]:
        """Functionary: a tool's name on the first line, its arguments on the next."""
        names = self._output.names.declared
        while True:
            text = self._tape.peek(_LEAD)
            line, newline, rest = text.partition("\n")
            name = line.removeprefix(">>>").strip()
            if newline and name in names and rest.strip():
                break
            waits = name in names if newline else _may_be(line, names)
            if not waits or self._tape.ended or len(text) == _LEAD:
                return False
            yield
        if not rest.lstrip().startswith("{"):
            return False
        self._tape.take(self._tape.at + len(line) + 1)
        yield from self._tape.past_blank()
        value = yield from self._tape.value()
        call = RawCall(name, value.text, value.closed)
        self._output.propose(Candidate([call], f"{line}\n{value.text}", exact=True))
        return True

    def react(self) -> Waiting[bool]:
        """`Action:` with a declared name and `Action Input:`."""
        line, following, at = yield from self._two_lines()
        action = _ACTION.match(line)
        if not action:
            return False
        given = _INPUT.match(following)
        schema = self._output.judge.schema_of(action["name"]) if given and action["name"] else None
        if schema is None or given is None:
            return False
        self._tape.take(self._tape.at + at + given.end())
        text = yield from self._input()
        self._output.accept(RawCall(action["name"], _arguments(text, schema)))
        return True

    def _two_lines(self) -> Waiting[tuple[str, str, int]]:
        """A line that may be an action, what follows it as far as it tells, and where."""
        while True:
            text = self._tape.peek(_LEAD)
            line, newline, rest = text.partition("\n")
            following = rest.lstrip()
            waits = _INPUT_BEGUN.fullmatch(following) if newline else _ACTION_BEGUN.fullmatch(line)
            if self._tape.ended or len(text) == _LEAD or not waits:
                return line, following, len(text) - len(following)
            yield

    def _input(self) -> Waiting[str]:
        """Everything up to the observation the model may go on to invent."""
        lines: list[str] = []
        while True:
            line = yield from self._tape.line()
            if not line or (lines and _NEXT.match(line)):
                return "".join(lines)
            lines.append(self._tape.pull(line))


def _is_given(call: RawCall) -> bool:
    """Has it arguments as an object, which prose in JSON seldom has beside a name?"""
    arguments = call.arguments
    return isinstance(arguments, dict) or (
        isinstance(arguments, str) and arguments.lstrip()[:1] == "{"
    )


def _may_be(line: str, words: tuple[str, ...]) -> bool:
    begun = line.removeprefix(">>>").strip().lower()
    return any(word.lower().startswith(begun) for word in words)


def _arguments(text: str, schema: dict[str, object]) -> str | dict[str, object]:
    """ReAct's input: an object, or the plain text of the tool's one parameter."""
    text = _STARS.sub("", text.strip())
    if text[:1] == "{":
        try:
            if isinstance(bodies.parse(text), dict):
                return text
        except ValueError:
            pass
    place = lone_parameter(schema)
    if text[:1] == '"' and text.count('"') in (1, 2):
        text = text.strip('"')
    return {place: text} if place else text
