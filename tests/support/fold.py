"""The one fold of events: what a stream comes to, and what is heard of an adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from adapters.errors import GatewayError
from adapters.protocol import (
    Adapter,
    Aside,
    ChatRequest,
    Event,
    Events,
    Finish,
    Json,
    Noted,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from adapters.receipts import Note

T = TypeVar("T")


@dataclass
class Answer:
    """A whole stream of events, folded; `error` is what it broke with."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Id, name, kind and arguments of each."""
    logprobs: list[Json] = field(default_factory=list)
    asides: list[tuple[str, Any]] = field(default_factory=list)
    opened: Opened | None = None
    notes: list[str] = field(default_factory=list)
    receipt: list[Note] = field(default_factory=list, compare=False)
    reason: str = ""
    usage: Usage | None = None
    native: str = ""
    turn: Json | None = None
    error: GatewayError | None = None
    batches: list[tuple[Event, ...]] = field(default_factory=list, compare=False)

    def take(self, event: Event) -> None:
        match event:
            case TextDelta(text, logprobs):
                self.text += text
                self.logprobs += logprobs
            case ReasoningDelta(text):
                self.reasoning += text
            case RefusalDelta(text):
                self.refusal += text
            case ToolCallStart(_, identity, name, kind):
                self.calls.append((identity, name, kind, ""))
            case ToolCallDelta(index, arguments):
                *said, before = self.calls[index]
                self.calls[index] = (said[0], said[1], said[2], before + arguments)
            case Aside(name, value):
                self.asides.append((name, value))
            case Opened(receipt, _):
                self.opened = event
                self.receipt += receipt
                self.notes += [note.code for note in receipt]
            case Noted(receipt):
                self.receipt += receipt
                self.notes += [note.code for note in receipt]
            case Finish(reason, usage, native, turn):
                self.reason, self.usage, self.native, self.turn = reason, usage, native, turn


def folded(events: Iterable[Event]) -> Answer:
    """What events that were heard come to."""
    answer = Answer()
    for event in events:
        answer.take(event)
    return answer


async def fold(stream: Events, *, keep: bool = True) -> Answer:
    """Read a stream to its end, good or bad; keep what came, or only what it comes to."""
    answer = Answer()
    try:
        async with aclosing(stream):
            async for batch in stream:
                if keep:
                    answer.batches.append(batch)
                for event in batch:
                    answer.take(event)
    except GatewayError as error:
        answer.error = error.with_traceback(None if not keep else error.__traceback__)
    return answer


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, and see that no task is left behind."""

    async def whole() -> T:
        result = await work
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"
        return result

    return asyncio.run(whole())


def ask(adapter: Adapter, asked: ChatRequest) -> list[Event]:
    """Run one request to its end."""

    async def whole() -> list[Event]:
        return [event async for batch in adapter.stream(asked) for event in batch]

    return asyncio.run(whole())
