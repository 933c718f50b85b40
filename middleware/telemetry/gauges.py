"""What is so at the moment of asking: open requests, breakers, queues, rests, state and ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from middleware.machine.board import Board
from middleware.telemetry.families import BREAKERS, QUEUED, RESTING
from middleware.telemetry.tally import Gauge, Labels
from middleware.telemetry.vocabulary import Vocabulary

_STATES: Mapping[str, float] = {"closed": 0.0, "half_open": 1.0, "open": 2.0}


class Ring(Protocol):
    """What an upstream's keys say of themselves."""

    def queued(self) -> int: ...

    def resting(self) -> int: ...


def one(number: Callable[[], float]) -> Gauge:
    """Of a gauge without labels."""

    async def look() -> Mapping[Labels, float]:
        return {(): float(number())}

    return look


def upstream_gauges(
    rings: Callable[[], Mapping[str, Ring]], board: Board, names: Vocabulary
) -> dict[str, Gauge]:
    """Gauges of all upstreams; the rings are of the config that is served then."""

    async def queued() -> Mapping[Labels, float]:
        return {(name,): float(ring.queued()) for name, ring in rings().items()}

    async def resting() -> Mapping[Labels, float]:
        return {(name,): float(ring.resting()) for name, ring in rings().items()}

    async def breakers() -> Mapping[Labels, float]:
        found: dict[Labels, float] = {}
        for name, state in board.breakers().items():
            upstream, _, model = name.partition("/")
            labels = upstream, names.upstream_model(model)
            found[labels] = max(_STATES[state], found.get(labels, 0.0))
        return found

    return {QUEUED.name: queued, RESTING.name: resting, BREAKERS.name: breakers}
