"""A model that knows no tools, and what is heard of it through emulation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import orjson

from adapters.errors import GatewayError
from adapters.protocol import (
    Adapter,
    ChatRequest,
    Event,
    Finish,
    FinishReason,
    Noted,
    Opened,
    RequestContext,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
    Usage,
)
from middleware.wrappers.emulation import Emulation
from middleware.wrappers.emulation.emulated import EmulatedTools
from tests.support.adapters import FakeAdapter, Step
from tests.support.fold import folded


@dataclass(frozen=True)
class Say:
    """One answer of the model."""

    text: str = ""
    reason: FinishReason = "stop"
    size: int = 3
    error: GatewayError | None = None
    calls: Sequence[tuple[str, str]] = ()

    def steps(self) -> Iterator[Step]:
        first: tuple[Event, ...] = (Opened((), Upstream("toy")),)
        for at in range(0, len(self.text), self.size):
            yield (*first, TextDelta(self.text[at : at + self.size]))
            first = ()
        if self.error is not None:
            yield self.error
        for index, (name, arguments) in enumerate(self.calls):
            yield (*first, ToolCallStart(index, f"id{index}", name))
            yield ToolCallDelta(index, arguments)
            first = ()
        yield (*first, Finish(self.reason, Usage(10, 5)))


class TextOnly(FakeAdapter):
    """A model that says what it is told to, one answer after the other; the last one stays."""

    def __init__(self, says: Sequence[Say]) -> None:
        super().__init__(usual=self.say, name="toy")
        self.says = says

    def say(self, _: ChatRequest) -> Iterator[Step]:
        return self.says[min(len(self.asked), len(self.says)) - 1].steps()


def tool(name: str, **parameters: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": parameters, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


TOOLS = (tool("get_weather", city={"type": "string"}), tool("add", x={"type": "integer"}))
OSLO = 'USE_TOOL\nTOOL_NAME: get_weather\nTOOL_ARGS: {"city": "Oslo"}'
BAD = 'USE_TOOL\nTOOL_NAME: get_weather\nTOOL_ARGS: {"town": "Oslo"}'
ADD = 'USE_TOOL\nTOOL_NAME: add\nTOOL_ARGS: {"x": 1}'


def asked(*messages: dict[str, Any], **more: Any) -> ChatRequest:
    turns = messages or ({"role": "user", "content": "Weather in Oslo?"},)
    return ChatRequest(
        **{"model": "m", "messages": turns, "tools": TOOLS, "call": RequestContext("r"), **more}
    )


@dataclass
class Heard:
    text: str
    calls: list[tuple[str, Any]]
    ids: list[str]
    finish: Finish
    notes: list[str]
    batches: list[tuple[Event, ...]]


def heard(adapter: Adapter, request: ChatRequest) -> Heard:
    async def listen() -> list[tuple[Event, ...]]:
        async with aclosing(adapter.stream(request)) as events:
            return [batch async for batch in events]

    batches = asyncio.run(listen())
    events = [event for batch in batches for event in batch]
    assert all(batches)
    assert [type(event) for event in events].count(Opened) == 1
    assert isinstance(events[0], Opened)
    assert isinstance(events[-1], Finish)
    calls: list[list[str]] = []
    for event in events:
        if isinstance(event, ToolCallStart):
            assert event.index == len(calls)
            calls.append([event.name, ""])
        elif isinstance(event, ToolCallDelta):
            assert event.index == len(calls) - 1
            calls[event.index][1] += event.arguments
    return Heard(
        text=folded(events).text,
        calls=[(name, orjson.loads(arguments)) for name, arguments in calls],
        ids=[event.id for event in events if isinstance(event, ToolCallStart)],
        finish=events[-1],
        notes=[note.code for event in events if isinstance(event, Noted) for note in event.receipt],
        batches=batches,
    )


def ask(*says: Say | str, options: Emulation | None = None, **more: Any) -> tuple[Heard, TextOnly]:
    model = TextOnly([Say(say) if isinstance(say, str) else say for say in says])
    return heard(EmulatedTools(model, options or Emulation()), asked(**more)), model


WEATHER = ("get_weather", {"city": "Oslo"})
ADDED = ("add", {"x": 1})


def system(model: TextOnly) -> str:
    return str(model.asked[0].messages[0]["content"])


HISTORY = (
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": "Looking.",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'},
            },
            {"id": "c2", "type": "function", "function": {"name": "add", "arguments": '{"x":1}'}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "3 degrees\nUSE_TOOL\nTOOL_NAME: add"},
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "image_url", "image_url": {}}]},
    {"role": "user", "content": "And?"},
)
