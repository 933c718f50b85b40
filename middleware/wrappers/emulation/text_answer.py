"""One answer while it is read: what leaves at once, what waits for its end, what was wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import assert_never

from adapters.errors import UpstreamError
from adapters.protocol import (
    Aside,
    Event,
    Finish,
    FinishReason,
    Noted,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from adapters.receipts import Code, Note, Receipt
from adapters.shared.calls import Calls
from adapters.shared.usage import total
from middleware.wrappers.emulation.ask.prompted_request import PromptedRequest
from middleware.wrappers.emulation.formats.bodies import names_another
from middleware.wrappers.emulation.formats.raw_call import Fault, Ready
from middleware.wrappers.emulation.judge.arguments import settle
from middleware.wrappers.emulation.judge.call_judge import CallJudge
from middleware.wrappers.emulation.read.reader import Reader, is_harmless

_MOST_NOTES = 64
_TOGETHER = 16
"""Texts that are looked at as one: where a mark stands in one of them, each is read."""
_text_of = attrgetter("text")
_OVERTAKES = frozenset({ReasoningDelta, Aside})
_BARE_OBJECT = re.compile(r"\s*(?:```\w*\s*)?(\{.*)", re.DOTALL)


class TextAnswer:
    """Maps the events of an answer in text to those of an answer with calls."""

    def __init__(self, prompt: PromptedRequest) -> None:
        self.prompt = prompt
        self.opened = False
        self.finish: Finish | None = None
        self.texts: list[str] = []
        """The model's own text, to show it what was wrong."""
        self._first: Opened | None = None
        self._waiting: list[Event] = []
        """What came of an answer from which a call is demanded, before the call."""
        self._native = False
        """The upstream made a call of its own."""
        self._over = False
        """It did, or refused: its text is text from then on."""
        self._notes: Receipt = ()
        self._corrections: list[Ready] = []
        self._usage: Usage | None = None

    @cached_property
    def _calls(self) -> Calls:
        return self.prompt.box.calls(self.prompt.request.call.id)

    # Its nine objects are not made for an answer that has nothing to be read.
    @cached_property
    def _reader(self) -> Reader:
        return Reader(self.prompt.tools, self._calls, self.prompt.rules)

    @property
    def _judge(self) -> CallJudge:
        return self._reader.judge

    @property
    def faults(self) -> list[Fault]:
        return [call for call in self._judge.open if isinstance(call, Fault)]

    @property
    def needs_correction(self) -> bool:
        """Is there a call to be had by asking once more?"""
        if self.finish is None or self.finish.reason == "length":
            return False
        return bool(self.faults) or (self._missing and not self._corrections)

    @property
    def _missing(self) -> bool:
        """A call was demanded and none was made."""
        return self.prompt.rules.forced and not self._judge.made and not self._judge.open

    @property
    def calls(self) -> list[Ready]:
        """Every good call that was read."""
        ready = (call for call in self._judge.open if isinstance(call, Ready))
        return [*self._judge.made, *ready]

    @property
    def notes(self) -> Receipt:
        """What was read otherwise than it was written, and what became of faulty calls."""
        return (*self._judge.notes.values(), *self._notes)

    def take(self, batch: tuple[Event, ...]) -> tuple[Event, ...]:
        """What may leave of one batch."""
        if self._passes_whole(batch) if not self.opened else self._passes_alone(batch):
            return batch
        out: list[Event] = []
        for kind, group in groupby(batch, type):
            if kind is TextDelta and not self._over:
                out += self._read([*map(_text_of, group)])
            elif kind is ToolCallDelta and self._is_as_numbered:
                out += group
            else:
                for event in group:
                    out = self._take(event, out)
        return self._gate(out)

    @property
    def _is_as_numbered(self) -> bool:
        """The calls are the upstream's own alone, and have its numbers."""
        return self._native and not self._judge.made

    def _passes_whole(self, batch: tuple[Event, ...]) -> bool:
        """Whether an answer that is here whole leaves as it came: nothing in it is to be read."""
        last, rules, kinds = batch[-1], self.prompt.rules, [*map(type, batch)]
        if kinds[0] is not Opened or type(last) is not Finish or rules.forced or rules.prompted:
            return False
        if last.reason == "length" or (last.reason == "stop" and ToolCallStart in kinds):
            return False
        texts = [one for one in batch if type(one) is TextDelta]
        return len(texts) < 2 and all(map(_is_harmless, texts)) and not _is_overtaken(kinds)

    def _passes_alone(self, batch: tuple[Event, ...]) -> bool:
        """Whether what came alone leaves as it came, as most does."""
        event = batch[0]
        if len(batch) > 1:
            return False
        if type(event) is ToolCallDelta:
            return self._is_as_numbered
        if type(event) is not TextDelta or self._over or event.logprobs or not event.text:
            return False
        passes = self._reader.passes(event.text)
        if passes:
            self.texts.append(event.text)
        return passes

    def _read(self, texts: list[str]) -> Iterator[Event]:
        """What leaves of texts that came together."""
        self.texts += texts
        if len(texts) == 1:
            yield from self._reader.feed(texts[0])
            return
        for some in (texts[at : at + _TOGETHER] for at in range(0, len(texts), _TOGETHER)):
            if self._reader.passes("".join(some)):
                yield from map(TextDelta, filter(None, some))
                continue
            for text in some:
                yield from self._reader.feed(text)

    def _take(self, event: Event, out: list[Event]) -> list[Event]:
        """What may leave with an event that is no text to be read."""
        match event:
            case Opened(receipt):
                told = self.prompt.notes(receipt)
                self._first = event if told == receipt else replace(event, receipt=told)
            case ToolCallStart() | ToolCallDelta():
                out += self._native_call(event)
            case Finish():
                return self._with_last(event, out)
            case RefusalDelta():
                out += (*self._text_left(), event)
            case TextDelta() | ReasoningDelta() | Aside() | Noted():
                out.append(event)
            case _:
                assert_never(event)
        return out

    def _with_last(self, finish: Finish, out: list[Event]) -> list[Event]:
        """With what was held until the end; nothing if all of it is one call's bare arguments."""
        self.finish, self._usage = finish, finish.usage
        out += self._text_left(finish.reason)
        if self._missing and (call := self._bare_arguments()):
            self._corrections = [call]
            self._waiting, out = [], []
        return out

    def _bare_arguments(self) -> Ready | None:
        """Where one tool alone may be called, its arguments are enough of a call."""
        text = _BARE_OBJECT.match("".join(self.texts))
        if len(self.prompt.tools) != 1 or not text:
            return None
        (tool,) = self.prompt.tools
        try:
            if names_another(text[1], tool):
                return None
            arguments = settle(text[1], tool.parameters, tool.name)
        except ValueError:
            return None
        return None if arguments.wrong else Ready(tool.name, arguments.text)

    def _text_left(self, reason: FinishReason = "stop") -> Iterator[Event]:
        """What is held of a text that is over."""
        if not self._over:
            self._over = True
            yield from self._reader.close(reason)

    def _native_call(self, event: ToolCallStart | ToolCallDelta) -> Iterator[Event]:
        """The upstream's own call, behind those that were read in its text."""
        self._native = True
        yield from self._text_left()
        made = len(self._judge.made)
        yield replace(event, index=event.index + made) if made else event

    def _gate(self, events: list[Event]) -> tuple[Event, ...]:
        """`Opened` leaves with the first real event; all waits where a call is demanded."""
        events = self._waiting + events if self._waiting else events
        if self.prompt.rules.forced and not self._judge.made:
            self._waiting = events
            return ()
        self._waiting = []
        if not events or self._first is None:
            return tuple(events)
        first, self._first = self._first, None
        self.opened = True
        return (first, *events)

    def correct(self, answer: TextAnswer) -> None:
        """Take the calls of the answer to the correction."""
        self._corrections = answer.calls
        self._notes += answer.notes
        second = answer.finish.usage if answer.finish else None
        self._usage = total(self._usage, second) if self._usage else second

    def end(self) -> tuple[Event, ...]:
        """What is left to say, and the finish."""
        if self.finish is None:
            return ()
        out = [*self._waiting, *self._corrected_calls()]
        made = self._judge.made or any(isinstance(event, ToolCallStart) for event in out)
        called = self._native or bool(made)
        reason = self._reason(self.finish.reason, called)
        if self._judge.open or not self._judge.made:
            out += self._calls.close()
        if self._judge.dropped:
            self._note("tool_call_withheld", "a call was not allowed, or cut by the token limit")
        if self.notes:
            out.append(Noted(self.notes))
        finish = self.finish
        if reason != finish.reason or self._usage is not finish.usage:
            finish = replace(finish, reason=reason, usage=self._usage)
        out.append(finish)
        return (self._first, *out) if self._first else tuple(out)

    def _reason(self, reason: FinishReason, called: bool) -> FinishReason:
        if self.prompt.rules.forced and not called and reason != "length":
            raise UpstreamError(
                "The model made no tool call although one was required. "
                "Ask it with tool_choice 'auto', or use a model that calls tools better.",
                code="tool_emulation_failed",
            )
        return "tool_calls" if called and reason == "stop" else reason

    def _corrected_calls(self) -> Iterator[Event]:
        """The calls from the first faulty one on, corrected where they could be."""
        made = self.calls
        corrections = [call for call in self._corrections if call not in made]
        ready: list[Ready] = []
        others = self._tools_at_fault(corrections)
        spoken = self._reader.spoken
        for call in self._judge.open:
            if isinstance(call, Ready):
                ready.append(call)
            elif correction := self._correction_of(call, corrections, others):
                ready.append(correction)
            elif call.text:
                yield TextDelta(f"\n{call.text}" if spoken else call.text)
                spoken = True
        if self._missing:
            ready = corrections
        for position, call in enumerate(ready, start=len(self._judge.made)):
            yield from self._calls.whole(position, None, *call)

    def _tools_at_fault(self, corrections: list[Ready]) -> Set[str]:
        faults = self.faults if corrections else ()
        return {fault.name for fault in faults if _is_of_a_tool(fault)}

    def _correction_of(
        self, fault: Fault, corrections: list[Ready], others: Set[str]
    ) -> Ready | None:
        """The correction of a faulty call, else the call as far as it was read."""
        for call in corrections:
            if call.name == fault.name if _is_of_a_tool(fault) else call.name not in others:
                corrections.remove(call)
                self._note("tool_call_corrected", f"asked again: {fault.detail}: {call.name!r}")
                return call
        self._note("tool_repair_failed", fault.detail)
        return fault.best

    def _note(self, code: Code, text: str) -> None:
        if len(self._notes) < _MOST_NOTES:
            self._notes += (Note(code, "tool_calls", text[:200]),)


def _is_overtaken(kinds: Sequence[type[Event]]) -> bool:
    """Of a text that is read some may be held, and what stands behind it leaves before."""
    return TextDelta in kinds and not _OVERTAKES.isdisjoint(kinds[kinds.index(TextDelta) :])


def _is_harmless(said: TextDelta) -> bool:
    return not said.logprobs and is_harmless(said.text)


def _is_of_a_tool(fault: Fault) -> bool:
    return fault.kind != "unknown_tool" and bool(fault.name)


def with_usage(batch: tuple[Event, ...], earlier: Finish | None) -> tuple[Event, ...]:
    """What was used before, added where the answer ends."""
    last = batch[-1]
    if earlier is None or not isinstance(last, Finish):
        return batch
    usage = total(earlier.usage, last.usage) if earlier.usage else last.usage
    return (*batch[:-1], replace(last, usage=usage))
