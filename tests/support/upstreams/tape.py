"""An upstream that is a list of bytes, at the seam of `adapters/wire/http.py`; answers folded."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from adapters.errors import GatewayError
from adapters.protocol import (
    Aside,
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
from adapters.wire.capture import Capture
from adapters.wire.http import Link, Reply, Transport
from adapters.wire.json_text import load

T = TypeVar("T")


class TapeReply(Reply):
    """Gives its pieces one read at a time, then the end of input."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: Sequence[bytes], headers: Mapping[str, str]) -> None:
        self.pieces = iter(pieces)
        self.headers = headers
        self.status = 200

    async def read(self, due: float) -> bytes:
        return next((piece for piece in self.pieces if piece), b"")

    async def settle(self) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Tape(Link):
    deliveries: Iterator[Sequence[bytes]] = field(default_factory=lambda: iter(()))
    """The pieces of each answer in turn."""
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, bytes] = field(default_factory=dict)
    """To small questions, by path."""

    async def post(self, path: str, body: bytes, due: float, kept: Capture | None = None) -> Reply:
        return TapeReply(next(self.deliveries), self.answer_headers)

    async def fetch(self, method: str, path: str, body: bytes | None, seconds: float) -> Any:
        return load(self.answers.get(path, b"null"))


def tape(pieces: Sequence[bytes], **headers: str) -> Tape:
    return Tape(
        "tape", "http://tape", Transport(), deliveries=iter([pieces]), answer_headers=headers
    )


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
