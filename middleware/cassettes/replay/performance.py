"""An answer that is known whole before it is given, and the pauses it is given with."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple

from adapters.errors import GatewayError
from adapters.protocol import (
    ChatRequest,
    Event,
    Events,
    Finish,
    FinishReason,
    Journey,
    Json,
    Planned,
    RefusalDelta,
)
from middleware.cassettes.errors import ConnectionCut
from middleware.cassettes.replay.wire import Drift
from middleware.wrappers.base import Batches

_TURN_OVER = 16
"""Batches after which others get their turn, where none is waited for."""
_WORTH_IT = 4
"""So many are given together."""


class Batch(NamedTuple):
    at: float
    """Milliseconds since the question, as recorded."""
    events: tuple[Event, ...]


_events_of = attrgetter("events")


@dataclass(frozen=True, slots=True)
class Performance:
    """What a turn comes to in this version."""

    batches: tuple[Batch, ...] = ()
    error: GatewayError | None = None
    """What ends it, before or behind its batches."""
    error_at: float = 0.0
    drift: tuple[Drift, ...] = ()
    body: Json | None = None
    """Of what is no chat."""
    planned: tuple[Planned, ...] = ()
    """Of what failed: what would be sent."""
    journey: Journey = field(default_factory=Journey)
    """Who was asked."""

    @classmethod
    def of(cls, *batches: tuple[Event, ...]) -> Performance:
        """One without pauses."""
        return cls(tuple(Batch(0.0, events) for events in batches))

    def with_events(self, batches: Sequence[tuple[Event, ...]]) -> Performance:
        """The same pauses, other words."""
        pairs = zip(self.batches, batches, strict=True)
        return replace(self, batches=tuple(Batch(old.at, events) for old, events in pairs))


@dataclass(frozen=True, slots=True)
class Timing:
    """`factor` 0: no pauses; 1: as recorded; 10: a tenth of them."""

    factor: float = 0.0
    longest: float | None = None
    """Seconds no pause is longer than."""

    def pause(self, milliseconds: float) -> float:
        seconds = milliseconds / 1000
        if self.longest is not None:
            seconds = min(seconds, self.longest)
        return seconds / self.factor


FAST = Timing()


@dataclass(slots=True)
class _Pace:
    """Waits until each batch is due, by the sum of the pauses so far: errors do not add up."""

    timing: Timing
    due: float
    at: float = 0.0

    async def reach(self, at: float) -> None:
        self.due += self.timing.pause(at - self.at)
        self.at = at
        await asyncio.sleep(max(0.0, self.due - asyncio.get_running_loop().time()))


@dataclass(frozen=True, slots=True)
class Performer:
    """An adapter that gives a performance, whatever it is asked."""

    performance: Performance
    timing: Timing = FAST
    resets: bool = False
    """The client's connection is reset at the end."""

    async def stream(self, request: ChatRequest) -> Events:
        performance = self.performance
        batches, pace = performance.batches, None
        if request.call.journey is not None:
            request.call.journey.steps += performance.journey.steps
        if self.timing.factor:
            pace = _Pace(self.timing, asyncio.get_running_loop().time())
            for at, events in batches:
                await pace.reach(at)
                yield events
        else:
            for begin in range(0, len(batches), _TURN_OVER):
                if begin:
                    await asyncio.sleep(0)
                turn = [*map(_events_of, batches[begin : begin + _TURN_OVER])]
                for events in _together(turn) if len(turn) >= _WORTH_IT else turn:
                    yield events
        if self.resets:
            raise ConnectionCut
        if performance.error is not None:
            if pace is not None:
                await pace.reach(performance.error_at)
            raise performance.error

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        return self.performance.planned


def _together(batches: list[tuple[Event, ...]]) -> Iterable[tuple[Event, ...]]:
    """The same as one, but for what ends an answer."""
    if type(batches[-1][-1]) is not Finish:
        return (Batches.of(batches),)
    return Batches.of(batches[:-1]), batches[-1]


def altered(performance: Performance, reason: FinishReason | None, refuses: bool) -> Performance:
    """The same answer with another reason at its end, or a refusal in its place."""
    if refuses and performance.batches:
        return Performance.of((*performance.batches[0].events[:1], *_REFUSAL))
    batches = [
        tuple(
            replace(one, reason=reason or one.reason) if type(one) is Finish else one
            for one in events
        )
        for _, events in performance.batches
    ]
    return performance.with_events(batches)


_REFUSAL = (RefusalDelta("I cannot help with that."), Finish("stop"))
