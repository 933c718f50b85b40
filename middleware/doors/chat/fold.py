"""Events → one completion."""

from __future__ import annotations

from collections.abc import Sequence
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
from middleware.doors.chat.words import Heading, echoed, joined
from middleware.doors.x_usetool import usage_object

_Rarer = ToolCallStart | RefusalDelta | Noted | Aside


class Fold:
    """Collects one answer; `body` says it whole."""

    __slots__ = (
        *("heading", "opened", "finish", "logprobs"),
        *("_asides", "_calls", "_reasoning", "_refusal", "_steps", "_text"),
    )

    def __init__(self, heading: Heading) -> None:
        self.heading = heading
        self.opened: Opened | None = None
        self.finish: Finish | None = None
        self.logprobs: list[Json] = []
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[tuple[ToolCallStart, list[str]]] = []
        self._asides: Json = {}
        self._steps: list[Json] = []
        """What server tools did."""

    def add(self, events: Sequence[Event]) -> None:
        say = self._text.append
        for event in events:
            # What is in every answer, or makes up most of one, comes first.
            if type(event) is TextDelta:
                say(event.text)
                if event.logprobs:
                    self.logprobs += event.logprobs
            elif type(event) is ToolCallDelta:
                self._calls[-1][1].append(event.arguments)
            elif type(event) is ReasoningDelta:
                self._reasoning.append(event.text)
            elif type(event) is Opened:
                self.opened = event
            elif type(event) is Finish:
                self.finish = event
            else:
                self._add(event)

    def _add(self, event: _Rarer) -> None:
        match event:
            case ToolCallStart():
                self._calls.append((event, []))
            case RefusalDelta(text):
                self._refusal.append(text)
            case Noted():
                pass  # the headers tell it
            case Aside("step" | "own_block" | "own_citations"):
                pass  # `steps` has them all; what is another language's own, no chat is told
            case Aside("steps", value):
                self._steps = value
            case Aside(name, value):
                self._asides[name] = joined(self._asides.get(name), value)
            case _:
                assert_never(event)

    def body(self) -> bytes:
        if self.opened is None or self.finish is None:
            raise Truncated("The upstream's answer has no end.")
        heading, upstream = self.heading, self.opened.upstream
        choice = {
            "index": 0,
            "message": self.message(),
            "logprobs": {"content": self.logprobs, "refusal": None} if self.logprobs else None,
            "finish_reason": heading.reason(self.finish),
        }
        completion: Json = {
            "id": heading.id,
            "object": "chat.completion",
            "created": heading.created,
            "model": heading.model,
            "choices": [choice],
        }
        if self.finish.usage is not None:
            completion["usage"] = usage_object(self.finish.usage)
        if upstream.fingerprint:
            completion["system_fingerprint"] = upstream.fingerprint
        if upstream.tier:
            completion["service_tier"] = upstream.tier
        if self._steps:
            completion["x_usetool"] = {"steps": self._steps}
        return orjson.dumps(completion)

    def message(self) -> Json:
        """The assistant's, as far as it came."""
        text = "".join(self._text)
        message: Json = {
            "role": "assistant",
            "content": text if text or not (self._calls or self._refusal) else None,
            "refusal": "".join(self._refusal) or None,
        }
        if self._reasoning:
            message["reasoning_content"] = "".join(self._reasoning)
        if self._calls and self.heading.legacy:
            message["function_call"] = _function(*self._calls[0])
        elif self._calls:
            message["tool_calls"] = [
                {"id": start.id, "type": start.kind, start.kind: _function(start, pieces)}
                for start, pieces in self._calls
            ]
        return message | echoed(self._asides, self.finish) if self._asides else message


def _function(start: ToolCallStart, pieces: list[str]) -> Json:
    key = "input" if start.kind == "custom" else "arguments"
    return {"name": start.name, key: "".join(pieces)}
