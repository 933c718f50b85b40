"""Places that answer as a test says, and what a model made of them does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from adapters.errors import GatewayError
from adapters.protocol import (
    ChatRequest,
    Finish,
    Journey,
    Opened,
    RequestContext,
    TextDelta,
    Upstream,
)
from adapters.shared.traits import Traits
from middleware.machine.memory import MemoryBoard
from middleware.state.memory import MemoryState
from middleware.wrappers.breaker import Breaker
from middleware.wrappers.choices import Alternative, Choices, ChoiceSettings
from middleware.wrappers.key_ring import KeyRing
from middleware.wrappers.keys import Rotation
from middleware.wrappers.route import Route
from tests.support.adapters import FakeAdapter, Script

QUESTION = {"role": "user", "content": "hi"}


def said_by(name: str) -> Script:
    return ((Opened((), Upstream(name)), TextDelta(name), Finish("stop")),)


class Scene:
    """Upstreams by name, with a board and a state they share."""

    def __init__(self) -> None:
        self.state = MemoryState()
        self.board = MemoryBoard()
        self.fakes: dict[str, FakeAdapter] = {}
        self.rings: dict[str, KeyRing] = {}

    def place(
        self,
        name: str,
        *fails: GatewayError,
        keys: int = 1,
        known: Traits | None = None,
        **more: Any,
    ) -> Alternative:
        """It fails as told, one error a call, then it says its name."""
        fake = FakeAdapter(*[(error,) for error in fails], usual=said_by(name), name=name)
        several = {f"{name}#{number}": str(number) for number in range(1, keys + 1)}
        ring = KeyRing(name, self.board, self.state, several if keys > 1 else {})
        inner = Rotation(fake, ring) if keys > 1 else fake
        self.fakes[name], self.rings[name] = fake, ring
        traits = known or Traits()
        return Alternative(
            name,
            Route(Breaker(inner, ring, name, f"{name}-1"), f"{name}-1"),
            f"{name}-1",
            ready=ring,
            several_keys=keys > 1,
            traits=lambda _: traits,
            **more,
        )

    def model(
        self, places: Sequence[Alternative], fallback: Sequence[Alternative] = (), **settings: Any
    ) -> Choices:
        keyed = any(place.several_keys for place in places)
        told = ChoiceSettings(keyed=keyed, **settings)
        return Choices("smart", places, fallback, told, self.state)

    def called(self) -> dict[str, int]:
        return {name: len(fake.asked) for name, fake in self.fakes.items() if fake.asked}


async def heard(choices: Choices, request: ChatRequest) -> str:
    events = [event async for batch in choices.stream(request) for event in batch]
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def asked(*messages: dict[str, Any], **more: Any) -> ChatRequest:
    call = RequestContext(journey=Journey())
    return replace(ChatRequest("smart", messages or (QUESTION,), call=call), **more)


def route_of(request: ChatRequest) -> str:
    assert request.call.journey is not None
    return ", ".join(request.call.journey.summary().steps)


def answer(choices: Choices, request: ChatRequest | None = None) -> tuple[str, str]:
    """Who answers, and by which route."""
    request = request or asked()
    return asyncio.run(heard(choices, request)), route_of(request)
