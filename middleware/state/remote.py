"""`RemoteState`: counters that are kept by the process above several workers."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence

from middleware.machine.channel import Away, Channel
from middleware.state.claims import NamedClaims
from middleware.state.memory import MemoryState
from middleware.state.store import Hold, Home, Mark, Taken

_PATIENCE = 1.0
"""Seconds for an answer; from then on this worker counts by itself, question by question."""


class RemoteState:
    """What has to be known is asked; what is only said waits for nobody."""

    home: Home = "file"

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._own = MemoryState()
        """What was taken while nobody answered."""
        self.told_well = True
        """What the other process says of the file."""

    @property
    def well(self) -> bool:
        return self.told_well and self._channel.open

    @property
    def marked(self) -> bool:
        return True

    def claims(self, request: str) -> NamedClaims:
        return NamedClaims(self, request)

    async def take(self, request: str, holds: Sequence[Hold]) -> Taken:
        said = [
            (name, amount, None if limit == math.inf else limit, *rest)
            for name, amount, limit, *rest in holds
        ]
        try:
            return Taken(*await self._channel.ask(_PATIENCE, "take", request, said))
        except Away:
            self._give_back(request, holds)
            return await self._own.take(request, holds)
        except asyncio.CancelledError:
            self._give_back(request, holds)
            raise

    def _give_back(self, request: str, holds: Sequence[Hold]) -> None:
        """It may have been taken, and nobody heard of it."""
        self._channel.tell("settle", request, {hold.counter: 0.0 for hold in holds})

    async def settle(self, request: str, amounts: Mapping[str, float]) -> None:
        await self._own.settle(request, amounts)
        self._channel.tell("settle", request, amounts)

    async def sums(self, counters: Sequence[str]) -> Sequence[float]:
        try:
            found: Sequence[float] = await self._channel.ask(_PATIENCE, "sums", counters)
        except Away:
            return await self._own.sums(counters)
        return found

    async def read(self, names: Sequence[str]) -> Sequence[Mark | None]:
        try:
            found = await self._channel.ask(_PATIENCE, "read", names)
        except Away:
            return await self._own.read(names)
        return [Mark(*one) if one else None for one in found]

    async def mark(self, name: str, text: str, seconds: float, later: bool = False) -> None:
        self._channel.tell("mark", name, text, seconds, later)
        await self._own.mark(name, text, seconds, later)

    async def close(self) -> None:
        """What is kept is written by the other process."""
