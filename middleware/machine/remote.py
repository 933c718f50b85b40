"""`RemoteBoard`: the machine's board as one of several workers has it.

What the hub says of breakers and slots is kept here, so that looking asks nobody. Where the hub
does not answer a worker decides by what it knows itself.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from middleware.machine.board import Board, BreakerState, Entry
from middleware.machine.channel import Away, Channel
from middleware.machine.memory import MemoryBoard

_PATIENCE = 1.0
"""Seconds for an answer of the hub."""
_SOON = 0.01
"""Seconds within which it hears of calls that went well."""
_MOST_BREAKERS = 4096
_OWN = 0
"""Number of a permission that the hub knows nothing of."""


@dataclass(slots=True)
class RemoteBoard(Board):
    channel: Channel
    _until: dict[str, float] = field(default_factory=dict)
    """When a breaker lets a call through, by the machine's clock; 0: it is closed."""
    _slots: dict[str, tuple[int, int]] = field(default_factory=dict)
    """How many hold it, on the whole machine, and how many wait."""
    _held: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Numbers of the permissions this worker has."""
    _turns: dict[int, asyncio.Future[bool]] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=lambda: count(_OWN + 1))
    _own: MemoryBoard = field(default_factory=MemoryBoard)
    """What is held without the hub."""

    # What the hub tells -----------------------------------------------------------------------

    def breaker_told(self, name: str, until: float) -> None:
        if len(self._until) >= _MOST_BREAKERS:
            del self._until[next(iter(self._until))]
        self._until[name] = until

    def slot_told(self, slot: str, held: int, waiting: int) -> None:
        if held or waiting:
            self._slots[slot] = held, waiting
        else:
            self._slots.pop(slot, None)

    def turn_told(self, number: int, taken: bool) -> None:
        turn = self._turns.get(number)
        if turn is not None and not turn.done():
            turn.set_result(taken)

    # Breakers ---------------------------------------------------------------------------------

    def breaker(self, name: str) -> BreakerState:
        until = self._until.get(name)
        if not until:
            return "closed"
        return "open" if time.monotonic() < until else "half_open"

    def reopens(self, name: str) -> float:
        return max(0.0, self._until.get(name, 0.0) - time.monotonic())

    def breakers(self) -> Mapping[str, BreakerState]:
        return {name: self.breaker(name) for name in self._until}

    async def enter(self, name: str) -> Entry:
        state = self.breaker(name)
        if state != "half_open":
            return "call" if state == "closed" else "refused"
        try:
            entry: Entry = await self.channel.ask(_PATIENCE, "enter", name)
        except Away:
            return "call"
        return entry

    def leave(self, name: str, well: bool | None, probe: bool = False) -> None:
        if well is not None or probe:
            self.channel.tell("leave", name, well, probe, within=_SOON if well else 0.0)

    # Slots ------------------------------------------------------------------------------------

    def free(self, slot: str, limit: int) -> int:
        held, _ = self._slots.get(slot, (0, 0))
        return max(0, limit - max(held, len(self._held.get(slot, ()))))

    def waiting(self, slot: str) -> int:
        return self._slots.get(slot, (0, 0))[1]

    async def take(self, slot: str, limit: int, seconds: float) -> bool:
        number = next(self._numbers)
        turn = self._turns[number] = asyncio.get_running_loop().create_future()
        taken = False
        try:
            taken = await self._taken(number, turn, slot, limit, seconds)
        except Away:
            return await self._take_own(slot, limit)
        finally:
            del self._turns[number]
            if not taken:
                self.channel.tell("release", number)
        if taken:
            self._held[slot].append(number)
        return taken

    async def _taken(
        self, number: int, turn: asyncio.Future[bool], slot: str, limit: int, seconds: float
    ) -> bool:
        answer: bool | None = await self.channel.ask(
            _PATIENCE, "slot", number, slot, limit, seconds
        )
        if answer is not None:
            return answer
        try:
            async with asyncio.timeout(seconds + _PATIENCE):
                return await turn
        except TimeoutError as error:
            raise Away from error

    async def _take_own(self, slot: str, limit: int) -> bool:
        taken = await self._own.take(slot, limit, 0)
        if taken:
            self._held[slot].append(_OWN)
        return taken

    def give(self, slot: str) -> None:
        held = self._held[slot]
        number = held.pop() if held else _OWN
        if not held:
            del self._held[slot]
        if number == _OWN:
            self._own.give(slot)
        else:
            self.channel.tell("release", number)
