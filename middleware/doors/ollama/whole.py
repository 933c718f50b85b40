"""Events → one object, as Ollama answers what is not streamed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

import orjson

from adapters.errors import Truncated
from adapters.protocol import (
    Aside,
    Event,
    Finish,
    Json,
    Noted,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from middleware.doors.door import Stamp
from middleware.doors.ollama.ending import Ending, HeldCalls
from middleware.doors.ollama.forms import LineForm, timestamp

_Rarer = RefusalDelta | ToolCallStart | Opened | Aside | Noted | Finish


@dataclass(slots=True)
class _Said:
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    logprobs: list[Json] = field(default_factory=list)
    calls: HeldCalls = field(default_factory=HeldCalls)
    ending: Ending = field(default_factory=Ending)
    finish: Finish | None = None

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            # What makes up almost all of an answer comes first.
            if type(event) is TextDelta:
                self.texts.append(event.text)
                self.logprobs += event.logprobs
            elif type(event) is ToolCallDelta:
                self.calls.go_on(event)
            elif type(event) is ReasoningDelta:
                self.thoughts.append(event.text)
            else:
                self._add(event)

    def _add(self, event: _Rarer) -> None:
        match event:
            case RefusalDelta(text):
                self.texts.append(text)
            case ToolCallStart():
                self.calls.begin(event)
            case Aside():
                self.ending.lose(event)
            case Opened() | Noted():
                pass  # the headers tell it
            case Finish():
                self.finish = event
            case _:
                assert_never(event)


def whole(form: LineForm, model: str, stamp: Stamp, events: Iterable[Event]) -> bytes:
    said = _Said()
    said.add(events)
    if said.finish is None:
        raise Truncated("The upstream's answer has no end.")
    calls = said.calls.objects(said.ending, said.finish)
    now = stamp.now()
    words = form.said("".join(said.texts), "".join(said.thoughts), calls)
    answer = {"model": model, "created_at": timestamp(now), **words}
    if said.logprobs:
        answer["logprobs"] = said.logprobs
    return orjson.dumps(answer | said.ending.members(said.finish, 0, now - stamp.began))
