"""What comes out of a reader: text, thoughts and calls, in order, and what went wrong.

White space waits until text follows it, so that a call leaves none behind. A JSON object that may
be a call waits until the end shows whether it is the whole answer or an example in prose; what
comes after it waits with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from adapters.protocol import Event, FinishReason, Note, ReasoningDelta, TextDelta
from adapters.shared.calls import MOST_CALLS, Calls, too_many
from adapters.shared.toolbox import Tool
from middleware.wrappers.emulation.ask.prompt import PLACEHOLDERS
from middleware.wrappers.emulation.formats.raw_call import Fault, RawCall, Ready
from middleware.wrappers.emulation.judge.arguments import as_text, settle
from middleware.wrappers.emulation.judge.names import Names, plain
from middleware.wrappers.emulation.judge.schemas import properties
from middleware.wrappers.emulation.read.context import Candidate, Context, goes_on

_MOST_NOTES = 16
# What looks like a special token; it is no text.
_MARKS = re.compile(r"<\|[^<>|]*\|>|<｜[^<>｜]*｜>|\[(?:TOOL_CALLS|ARGS|CALL_ID)\]")


@dataclass(slots=True)
class Output:
    tools: Sequence[Tool]
    names: Names
    calls: Calls
    prose: bool
    """Is a call accepted that stands as JSON amid prose?"""
    forced: bool
    """A call was demanded: whatever can be one is one."""
    withheld: bool = False
    """No call was allowed: blocks are taken out and not passed on."""
    reason: FinishReason = "stop"
    open: list[Ready | Fault] = field(default_factory=list)
    """The calls from the first faulty one on, in order."""
    made: list[Ready] = field(default_factory=list)
    """The calls passed on."""
    dropped: int = 0
    """Calls that were not allowed, or cut by the end."""
    spoken: bool = False
    """Something visible was said."""
    behind_call: bool = False
    """Nothing was said since the last call."""
    nesting: int = 0
    """How many brackets of the paragraph are open: what stands in them is part of something."""
    fence_line: str = ""
    """The fence that was opened last, if it was not closed."""
    blocks: int = 0
    """Blocks of our own language that were met."""
    context: Context = field(default_factory=Context)
    tried: list[RawCall | Candidate | str] = field(default_factory=list)
    """The calls of an attempt; a text is one that cannot be read."""
    said_meanwhile: bool = False
    """Text was said in an attempt."""
    _later: list[Callable[[], None]] | None = None
    notes: dict[str, Note] = field(default_factory=dict)
    """What was read otherwise than it was written, once for each code and text."""
    _events: list[Event] = field(default_factory=list)
    _words: list[str] = field(default_factory=list)
    _held: list[str] = field(default_factory=list)
    _queue: list[Event | Candidate | RawCall] = field(default_factory=list)
    _proposed: int = 0

    @property
    def plain(self) -> bool:
        """Nothing waits: text may leave as it comes."""
        return self.spoken and not self._held and not self._queue

    @property
    def trying(self) -> bool:
        return self._later is not None

    @property
    def has_room(self) -> bool:
        """May more be put off? What is done at once is to take a moment only."""
        return len(self._later or ()) < MOST_CALLS

    def attempt(self) -> None:
        """Put off what is done from here on."""
        self._later, self.tried, self.said_meanwhile = [], [], False

    def commit(self) -> None:
        """Do what was put off."""
        later, self._later = self._later or (), None
        for one in later:
            one()

    def forget(self) -> None:
        """Do nothing of what was put off."""
        self._later = None

    def _puts_off(self, step: Callable[[], None], call: RawCall | Candidate | str = "") -> bool:
        if self._later is None:
            return False
        self._later.append(step)
        if call:
            self.tried.append(call)
            self.behind_call = True
        return True

    @property
    def here(self) -> Context:
        """What stands before the place that is read."""
        context = replace(self.context)
        context.add("".join(self._held))
        return context

    def hold(self, text: str) -> None:
        """White space, or what stands between two calls."""
        if text and not self._puts_off(partial(self.hold, text)):
            self._held.append(text)

    def say(self, text: str) -> None:
        if not text:
            return
        self.behind_call = False
        if self._puts_off(partial(self.say, text)):
            self.said_meanwhile = self.said_meanwhile or not text.isspace()
            return
        self.context.add("".join(self._held) + text if self._held else text)
        if self._held:
            if self.nesting and self._is_apart():
                self.nesting = 0
            if self.spoken or not self.made or any(map(str.strip, self._held)):
                self._words += self._held
            self._held.clear()
        self.spoken = True
        count = text.count
        self.nesting += count("{") + count("[") - count("}") - count("]")
        self._words.append(text)

    def _is_apart(self) -> bool:
        """Does a new paragraph begin?"""
        return len(self._held) > 1 and "".join(self._held).count("\n") > 1

    def think(self, text: str) -> None:
        if text and not self._puts_off(partial(self.think, text)):
            self._put(ReasoningDelta(text))

    def release(self) -> None:
        """What is held was not between two calls."""
        if any(map(str.strip, self._held)):
            held = "".join(self._held)
            self._held.clear()
            self.say(held)

    def propose(self, candidate: Candidate) -> None:
        if self._puts_off(partial(self.propose, candidate), candidate):
            return
        self._proposed += 1
        if self._proposed > MOST_CALLS:
            self.say(candidate.raw)
            return
        self._flush()
        self._queue.append(candidate._replace(raw="".join(self._held) + candidate.raw))
        self._held.clear()
        self.behind_call = True

    def accept(self, found: RawCall) -> None:
        """Pass a call on, or note what is wrong with it."""
        if self._puts_off(partial(self.accept, found), found):
            return
        self._flush()
        self._set_apart()
        if self._queue:
            self._queue.append(found)
        else:
            self._settle(found)

    def fail(self, body: str) -> None:
        """Something behind a token could not be read at all."""
        if self._puts_off(partial(self.fail, body), body or " "):
            return
        self._flush()
        self._set_apart()
        detail = f"the call could not be read: {body[:80]!r}"
        # What begins like a call was one gone wrong; all else was meant to be read.
        text = "" if body.startswith(("{", "[")) else _MARKS.sub(" ", body).strip()
        self._stay_open(Fault("unreadable_arguments", "", detail, None, text))

    def note(self, code: str, text: str) -> None:
        if len(self.notes) >= _MOST_NOTES:
            text = "further ones, of the same kind"
        self.notes[code + text] = Note(code, "tool_calls", text)

    def _set_apart(self) -> None:
        """Of the white space around a call, as much stays as keeps the texts apart."""
        self.behind_call = True
        del self._held[1 if self.spoken else 0 :]

    def drain(self) -> list[Event]:
        self._flush()
        events, self._events = self._events, []
        return events

    def finish(self) -> None:
        """The text has ended: decide what waited."""
        held = "".join(self._held)
        self._held.clear()
        behind = self.behind_call or bool(self.made)
        if held and not behind:
            self._words.append(held)
        self._flush()
        queue, self._queue = self._queue, []
        accepts = set(map(id, self._judge(queue)))
        for one in queue:
            self._release(one, id(one) in accepts)
        if behind and held and not (self.made or self.open or self.dropped):
            self._events.append(TextDelta(held))
        if not self.open:
            self._events += self.calls.close()

    def _judge(self, queue: Sequence[Event | Candidate | RawCall]) -> Sequence[Candidate]:
        """Which of the proposed calls are calls? All, where nothing else was said.

        Amid prose bare ones are where there is just one and it is certain, and those in a fence
        where no more is said behind it.
        """
        proposed = [one for one in queue if isinstance(one, Candidate)]
        if self.forced or not self._visible(queue):
            return proposed
        fenced = not goes_on(queue)
        certain = self._certain([one for one in proposed if not one.marked])
        return [one for one in proposed if one.may_be(fenced, certain)]

    def _release(self, one: Event | Candidate | RawCall, accepts: bool) -> None:
        if isinstance(one, RawCall):
            self._settle(one)
        elif not isinstance(one, Candidate):
            self._events.append(one)
        elif accepts and (unknown := self._unknown(one.found)):
            self._stay_open(self._no_tool(unknown, one.raw))
        elif accepts:
            for found in one.found:
                self._settle(found)
        else:
            self._events.append(TextDelta(one.raw))

    def _visible(self, queue: Sequence[Event | Candidate | RawCall]) -> bool:
        return any(
            isinstance(one, TextDelta) and one.text.strip() for one in (*self._events, *queue)
        ) or (self.spoken and not any(isinstance(one, TextDelta) for one in queue))

    def _certain(self, bare: Sequence[Candidate]) -> bool:
        """Is it just one, with exact names and arguments that the schemas take?"""
        if not self.prose or len(bare) != 1 or not bare[0].exact:
            return False
        try:
            return not any(
                settle(found.arguments, self._schema(found.name), found.name).wrong
                for found in bare[0].found
            )
        except ValueError:
            return False

    def _flush(self) -> None:
        if self._words:
            text = "".join(self._words)
            self._words.clear()
            self._put(TextDelta(text))

    def _put(self, event: Event) -> None:
        if self._queue:
            self._queue.append(event)
        else:
            self._events.append(event)

    def schema_of(self, said: str) -> dict[str, object] | None:
        name = self.names.find(said)
        return None if name is None else self._schema(name)

    def parameters(self, said: str) -> frozenset[str]:
        """The plain names of a tool's parameters; of every tool's where the name is not known."""
        name = self.names.find(said)
        schemas = [tool.parameters for tool in self.tools if name in (None, tool.name)]
        return frozenset(plain(one) for schema in schemas for one in properties(schema))

    def _schema(self, name: str) -> dict[str, object]:
        return next((tool.parameters for tool in self.tools if tool.name == name), {})

    def _settle(self, found: RawCall) -> None:
        if self.withheld or (not found.whole and self.reason == "length"):
            self.dropped += 1
            return
        call = self._settled(found)
        if isinstance(call, Fault) or self.open:
            self._stay_open(call)
        else:
            self._events += self.calls.whole(len(self.made), None, *call)
            self.made.append(call)

    def _stay_open(self, call: Ready | Fault) -> None:
        if len(self.made) + len(self.open) >= MOST_CALLS:
            raise too_many()
        self.open.append(call)

    def _settled(self, found: RawCall) -> Ready | Fault:
        """The call as it may be passed on, or what is wrong with it."""
        text = f"{found.name} {as_text(found.arguments)}".strip()
        name = self.names.find(found.name)
        if name is None:
            return self._no_tool(found.name, text)
        if name not in found.name:
            self.note("tool_name_read", f"{found.name[:80]!r} was read as the tool {name!r}")
        schema = self._schema(name)
        try:
            _require_end(found, schema)
            arguments = settle(found.arguments, schema, name)
        except ValueError as error:
            return Fault("unreadable_arguments", name, str(error), None, text)
        ready = Ready(name, arguments.text)
        if not arguments.wrong:
            return ready
        return Fault("schema", name, arguments.wrong, ready if arguments.given else None, text)

    def _no_tool(self, said: str, text: str) -> Fault:
        text = "" if said in PLACEHOLDERS else text  # our own words, repeated
        return Fault("unknown_tool", said, f"there is no tool {said[:80]!r}", None, text)

    def _unknown(self, found: Sequence[RawCall]) -> str:
        """The first of the names that no tool has; one is enough to ask about them all."""
        return next((one.name for one in found if self.names.find(one.name) is None), "")


def _require_end(found: RawCall, schema: dict[str, object]) -> None:
    if found.unfinished and properties(schema):
        raise ValueError("the call is not closed")
    if found.bare and properties(schema):
        raise ValueError("the arguments are missing")
