"""A guarded fake, with its clock, its journey and what the tests ask of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from adapters.errors import GatewayError, from_status
from adapters.outcomes import PassedOver
from adapters.protocol import (
    ChatRequest,
    Event,
    Finish,
    Journey,
    Opened,
    RequestContext,
    TextDelta,
    Upstream,
)
from middleware import config
from middleware.machine.memory import MemoryBoard
from middleware.state.memory import MemoryState
from middleware.wrappers.breaker import Breaker
from middleware.wrappers.guards import guard
from middleware.wrappers.key_ring import KeyRing, ring_of
from tests.support.adapters import FakeAdapter

T = TypeVar("T")
HI = {"role": "user", "content": "hi"}
OPENED, TEXT, END = Opened((), Upstream("up")), TextDelta("hello"), Finish("stop")
ANSWER: tuple[Event | tuple[Event, ...], ...] = ((OPENED, TEXT), END)
ENVIRONMENT = {f"KEY_{letter}": f"secret-{letter}" for letter in "ABCD"}
THREE = 'api_key = ["env:KEY_A", "env:KEY_B", "env:KEY_C"]'


def failure(status: int, body: bytes = b"", **headers: str) -> GatewayError:
    return from_status(
        status, {key.replace("_", "-"): headers[key] for key in headers}, body, "up", ()
    )


def run(work: Awaitable[T], seconds: float = 5) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(work, seconds)

    return asyncio.run(bounded())


@dataclass
class Guarding:
    """One model of one upstream."""

    upstream: str = ""
    """Further lines of its section."""
    leaf: FakeAdapter = field(default_factory=lambda: FakeAdapter(usual=ANSWER))
    public: str = "m"
    name: str = "m-1"
    now: float = 1_000_000.0
    counting: bool = False
    ring: KeyRing = field(init=False)
    guard: Breaker = field(init=False)

    def __post_init__(self) -> None:
        text = (
            f'[upstreams.up]\nkind = "compatible"\nbase_url = "http://up.test"\n{self.upstream}\n'
            f'[models."{self.public}"]\nupstream = "up"\nname = "{self.name}"\n'
        )
        found = config.parse(text, environment=ENVIRONMENT)
        board = MemoryBoard(now=self.clock)
        self.ring = ring_of(found.upstreams["up"], board, MemoryState(self.clock))
        self.ring.clock = self.clock
        self.ring.counting |= self.counting
        self.guard = guard(self.leaf, found.models[self.public], self.ring)

    def clock(self) -> float:
        return self.now

    def request(self, journey: Journey | None = None, **call: Any) -> ChatRequest:
        context = RequestContext(journey=journey if journey is not None else Journey(), **call)
        return ChatRequest(self.name, (HI,), call=context)

    async def ask(self, journey: Journey | None = None, **call: Any) -> GatewayError | None:
        request = self.request(journey, **call)
        try:
            async with aclosing(self.guard.stream(request)) as batches:
                async for _ in batches:
                    pass
        except GatewayError as error:
            return error
        return None

    def keys_used(self) -> list[str]:
        return [request.call.key for request in self.leaf.asked]

    async def rest(self, *names: str, seconds: str = "30") -> None:
        for name in names:
            error = failure(429, retry_after=seconds)
            await self.ring.failed(name, self.name, "rate_limited", error)

    async def order(self, conversation: str = "c") -> list[str]:
        return [turn.name for turn in await self.ring.turns(self.name, conversation)]


def told(journey: Journey) -> list[str]:
    """The route, as headers say it."""
    return [
        f"{step.place}={step.reason if isinstance(step, PassedOver) else step.outcome}"
        for step in journey.steps
    ]


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def share(counts: Sequence[int]) -> float:
    return min(counts) / max(counts)
