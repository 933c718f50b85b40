"""What comes out of a reader: text, thoughts and calls, in order.

White space waits until text follows it, so that a call leaves none behind. A JSON object that may
be a call waits until the end shows whether it is the whole answer or an example in prose; what
comes after it waits with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from adapters.protocol import Event, ReasoningDelta, TextDelta
from adapters.shared.calls import MOST_CALLS
from middleware.wrappers.emulation.formats.raw_call import Fault, RawCall
from middleware.wrappers.emulation.judge.call_judge import CallJudge
from middleware.wrappers.emulation.read.context import Attempt, Candidate, Context, goes_on
from middleware.wrappers.emulation.read.rules import ReadRules

# What looks like a special token; it is no text.
_MARKS = re.compile(r"<\|[^<>|]*\|>|<｜[^<>｜]*｜>|\[(?:TOOL_CALLS|ARGS|CALL_ID)\]")

Item = Event | Candidate | RawCall


class Output:
    """Readers say what they met; the fields are written here alone."""

    def __init__(self, rules: ReadRules, judge: CallJudge) -> None:
        self.rules = rules
        self.judge = judge
        self.names = judge.names
        self.context = Context()
        """The text said last, as far as it is not held."""
        self.spoken = False
        """Something visible was said."""
        self.behind_call = False
        """Nothing was said since the last call."""
        self.fence_line = ""
        """The fence that was opened last, if it was not closed."""
        self._nesting = 0
        """How many brackets of the paragraph are open."""
        self._attempt: Attempt | None = None
        self._held: list[str] = []
        """White space, and what stands between two calls."""
        self._words: list[str] = []
        """Text that is said and not yet an event."""
        self._queue: list[Item] = []
        """From the first candidate on: all that waits for the end of the answer."""
        self._proposed = 0
        self._events: list[Event] = []
        """What may leave."""

    @property
    def plain(self) -> bool:
        """Nothing waits: text may leave as it comes."""
        return self.spoken and not self._held and not self._queue

    @property
    def trying(self) -> bool:
        return self._attempt is not None

    @property
    def nested(self) -> bool:
        """Are brackets open? What stands in them is part of something."""
        return self._nesting > 0

    @property
    def cut(self) -> bool:
        """The answer ran out of tokens."""
        return self.judge.reason == "length"

    @property
    def here(self) -> Context:
        """What stands before the place that is read."""
        context = replace(self.context)
        context.add("".join(self._held))
        return context

    def attempt(self) -> Attempt:
        """Put off what is done from here on."""
        self._attempt = Attempt()
        return self._attempt

    def commit(self) -> None:
        """Do what was put off."""
        steps, self._attempt = self._attempt.steps if self._attempt else (), None
        for step in steps:
            step()

    def forget(self) -> None:
        """Do nothing of what was put off."""
        self._attempt = None

    def _puts_off(self, step: Callable[[], None], call: RawCall | Candidate | str = "") -> bool:
        if self._attempt is None:
            return False
        self._attempt.steps.append(step)
        if call:
            self._attempt.calls.append(call)
            self.behind_call = True
        return True

    def pass_plain(self, text: str) -> None:
        """Text without brackets and line ends leaves past the tape, where nothing waits."""
        self.context.add(text)

    def say(self, text: str) -> None:
        if not text:
            return
        self.behind_call = False
        if self._puts_off(partial(self.say, text)):
            if self._attempt and not text.isspace():
                self._attempt.spoken = True
            return
        self.context.add("".join(self._held) + text if self._held else text)
        if self._held:
            if self._nesting and self._is_apart():
                self._nesting = 0
            if self.spoken or not self.judge.made or any(map(str.strip, self._held)):
                self._words += self._held
            self._held.clear()
        self.spoken = True
        count = text.count
        self._nesting += count("{") + count("[") - count("}") - count("]")
        self._words.append(text)

    def _is_apart(self) -> bool:
        """Does a new paragraph begin?"""
        return len(self._held) > 1 and "".join(self._held).count("\n") > 1

    def think(self, text: str) -> None:
        if text and not self._puts_off(partial(self.think, text)):
            self._put(ReasoningDelta(text))

    def hold(self, text: str) -> None:
        """White space, or what stands between two calls."""
        if text and not self._puts_off(partial(self.hold, text)):
            self._held.append(text)

    def release(self) -> None:
        """What is held was not between two calls."""
        if any(map(str.strip, self._held)):
            held = "".join(self._held)
            self._held.clear()
            self.say(held)

    def begin_fence(self, line: str) -> None:
        self.fence_line, self._nesting = line, 0

    def end_fence(self) -> None:
        self.fence_line, self._nesting = "", 0

    def begin_block(self) -> None:
        """A marker or a key of our own language."""
        if self._attempt is not None:
            self._attempt.own = True

    def end_call(self) -> None:
        self.behind_call = True

    def propose(self, candidate: Candidate) -> None:
        """What may be a call: the end of the answer decides."""
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

    def accept(self, call: RawCall) -> None:
        """What is a call: its judge passes it on, or says what is wrong with it."""
        if self._puts_off(partial(self.accept, call), call):
            return
        self._flush()
        self._set_apart()
        if self._queue:
            self._queue.append(call)
        else:
            self._events += self.judge.pass_on(call)

    def fail(self, body: str) -> None:
        """Something behind a token could not be read at all."""
        if self._puts_off(partial(self.fail, body), body or " "):
            return
        self._flush()
        self._set_apart()
        detail = f"the call could not be read: {body[:80]!r}"
        # What begins like a call was one gone wrong; all else was meant to be read.
        text = "" if body.startswith(("{", "[")) else _MARKS.sub(" ", body).strip()
        self.judge.keep_open(Fault("unreadable_arguments", "", detail, None, text))

    def _set_apart(self) -> None:
        """Of the white space around a call, as much stays as keeps the texts apart."""
        self.behind_call = True
        del self._held[1 if self.spoken else 0 :]

    def drain(self) -> list[Event]:
        self._flush()
        events, self._events = self._events, []
        return events

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

    def finish(self) -> None:
        """The text has ended: decide what waited."""
        judge, held = self.judge, "".join(self._held)
        self._held.clear()
        behind = self.behind_call or bool(judge.made)
        if held and not behind:
            self._words.append(held)
        self._flush()
        queue, self._queue = self._queue, []
        calls = set(map(id, self._calls_among(queue)))
        for item in queue:
            self._decide(item, id(item) in calls)
        if behind and held and not (judge.made or judge.open or judge.dropped):
            self._events.append(TextDelta(held))
        self._events += judge.close()

    def _calls_among(self, queue: Sequence[Item]) -> Sequence[Candidate]:
        """Which of the proposed calls are calls? All, where nothing else was said.

        Amid prose bare ones are where there is just one and it is certain, and those in a fence
        where no more is said behind it.
        """
        proposed = [item for item in queue if isinstance(item, Candidate)]
        if self.rules.forced or not self._visible(queue):
            return proposed
        fenced = not goes_on(queue)
        certain = self._is_certain([candidate for candidate in proposed if not candidate.marked])
        return [candidate for candidate in proposed if candidate.may_be(fenced, certain)]

    def _decide(self, item: Item, is_call: bool) -> None:
        if isinstance(item, RawCall):
            self._events += self.judge.pass_on(item)
        elif not isinstance(item, Candidate):
            self._events.append(item)
        elif is_call and (unknown := self.judge.unknown(item.calls)):
            self.judge.keep_open(self.judge.no_tool(unknown, item.raw))
        elif is_call:
            for call in item.calls:
                self._events += self.judge.pass_on(call)
        else:
            self._events.append(TextDelta(item.raw))

    def _visible(self, queue: Sequence[Item]) -> bool:
        return any(
            isinstance(item, TextDelta) and item.text.strip() for item in (*self._events, *queue)
        ) or (self.spoken and not any(isinstance(item, TextDelta) for item in queue))

    def _is_certain(self, bare: Sequence[Candidate]) -> bool:
        """Is it just one, with exact names and arguments that the schemas take?"""
        certain = self.rules.prose and len(bare) == 1 and bare[0].exact
        return certain and self.judge.is_certain(bare[0].calls)
