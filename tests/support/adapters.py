"""The one fake adapter: it answers as a test says, fails, waits, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from adapters.leaf import Leaf
from adapters.protocol import ChatRequest, Event, Events, Json, Planned
from adapters.receipts import Receipt

PATIENCE = 30.0
"""Seconds until what hangs fails: FastAPI alone may take several to be built on a busy machine."""


class Wait:
    """A place in an answer where nothing comes until the test says so."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.over = asyncio.Event()

    async def until_reached(self) -> None:
        await asyncio.wait_for(self.reached.wait(), PATIENCE)


Step = Event | tuple[Event, ...] | BaseException | Wait | float
"""Events are told, one or a batch; errors raised; a number is slept, in seconds."""
Script = Iterable[Step] | Callable[[ChatRequest], Iterable[Step]]


class FakeAdapter(Leaf):
    """Gives its answers one after the other, then its usual one, if it has one."""

    def __init__(
        self,
        *answers: Script,
        usual: Script | None = None,
        name: str = "scripted",
        receipt: Receipt = (),
    ) -> None:
        self.answers = list(answers)
        self.usual = usual
        self.name = name
        self.receipt = receipt
        self.asked: list[ChatRequest] = []
        self.closed = 0
        self.left = asyncio.Event()
        """Somebody closed the stream, or it came to its end."""

    async def stream(self, request: ChatRequest) -> Events:
        self.asked.append(request)
        answer = self.usual if self.usual is not None and not self.answers else self.answers.pop(0)
        try:
            for step in answer(request) if callable(answer) else answer:
                if isinstance(step, BaseException):
                    raise step
                if isinstance(step, Wait):
                    step.reached.set()
                    await step.over.wait()
                elif isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    yield step if isinstance(step, tuple) else (step,)
        finally:
            self.closed += 1
            self.left.set()

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        body = {"messages": list(request.messages)}
        return (Planned(self.name, f"http://{self.name}", body, self.receipt),)

    def last(self) -> list[Json]:
        """The messages of the last request."""
        return list(self.asked[-1].messages)


def repeating(*steps: Step, receipt: Receipt = ()) -> FakeAdapter:
    """Every request gets these steps."""
    return FakeAdapter(usual=steps, receipt=receipt)
