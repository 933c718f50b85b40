"""The board of one process."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from middleware.machine.board import Board, BreakerState, Entry

_WINDOW = 30
"""Seconds that are looked back on."""
_LEAST = 20
_PAUSE, _LONGEST_PAUSE = 10.0, 60.0
_LONGEST_PROBE = 60.0
"""Seconds after which a probe that nobody ended is made again."""
_MOST_BREAKERS = 4096
"""Clients choose the names behind a wildcard; the oldest that are closed are forgotten."""


class _Marks:
    """What is remembered of one breaker: calls and failures, by the second."""

    __slots__ = ("calls", "failures", "opened", "pause", "probed", "seconds", "until")

    def __init__(self) -> None:
        self.seconds: deque[list[int]] = deque()
        self.calls = self.failures = 0
        self.until = 0.0
        """When it lets a call through; 0: it is closed."""
        self.pause = _PAUSE
        self.probed = 0.0
        """Since when a probe is at work; 0: none is."""
        self.opened = False

    def add(self, now: float, well: bool, least: float) -> None:
        second = int(now)
        if not self.seconds or self.seconds[-1][0] != second:
            self.seconds.append([second, 0, 0])
            while self.seconds[0][0] <= second - _WINDOW:
                _, calls, failures = self.seconds.popleft()
                self.calls -= calls
                self.failures -= failures
        last = self.seconds[-1]
        last[1] += 1
        self.calls += 1
        if not well:
            last[2] += 1
            self.failures += 1
            if self.calls >= least and self.failures * 2 >= self.calls:
                self.open(now)

    def open(self, now: float) -> None:
        self.until, self.opened = now + self.pause, True

    def close(self) -> None:
        self.seconds.clear()
        self.calls = self.failures = 0
        self.until, self.pause = 0.0, _PAUSE

    def probe_ended(self, now: float, well: bool | None) -> None:
        self.probed = 0.0
        if well:
            self.close()
        elif well is False:
            self.pause = min(_LONGEST_PAUSE, self.pause * 2)
            self.open(now)


@dataclass(slots=True)
class _Slots:
    """One slot's name: how many hold it, and who waits, in order, with the limit each was told."""

    held: int = 0
    waiting: deque[tuple[int, asyncio.Future[bool]]] = field(default_factory=deque)

    def wake(self) -> None:
        """Hand on what was freed, to the first in line who may take it."""
        for waiter in self.waiting:
            limit, turn = waiter
            if self.held < limit and not turn.done():
                self.waiting.remove(waiter)
                self.held += 1
                turn.set_result(True)
                return


@dataclass(slots=True)
class MemoryBoard(Board):
    least: float = _LEAST
    """Calls in the window from which on a breaker may open."""
    now: Callable[[], float] = time.monotonic
    _marks: dict[str, _Marks] = field(default_factory=dict)
    _slots: dict[str, _Slots] = field(default_factory=dict)

    def breaker(self, name: str) -> BreakerState:
        marks = self._marks.get(name)
        if marks is None or not marks.until:
            return "closed"
        return "open" if self.now() < marks.until else "half_open"

    def reopens(self, name: str) -> float:
        marks = self._marks.get(name)
        return max(0.0, marks.until - self.now()) if marks else 0.0

    def breakers(self) -> Mapping[str, BreakerState]:
        return {name: self.breaker(name) for name, marks in self._marks.items() if marks.opened}

    async def enter(self, name: str) -> Entry:
        marks = self._marks.get(name)
        if marks is None or not marks.until:
            return "call"
        now = self.now()
        if now < marks.until or (marks.probed and now < marks.probed + _LONGEST_PROBE):
            return "refused"
        marks.probed = now
        return "probe"

    def leave(self, name: str, well: bool | None, probe: bool = False) -> None:
        marks = self._marks.get(name)
        if marks is None:
            if well is None:
                return
            if len(self._marks) >= _MOST_BREAKERS:
                del self._marks[self._oldest()]
            marks = self._marks[name] = _Marks()
        if probe:
            marks.probe_ended(self.now(), well)
        # What began before it opened says nothing of how it is now.
        elif well is not None and not marks.until:
            marks.add(self.now(), well, self.least)

    def _oldest(self) -> str:
        """Of those that are closed, while there are any: nobody's names end a pause."""
        closed = (name for name, marks in self._marks.items() if not marks.until)
        return next(closed, next(iter(self._marks)))

    def free(self, slot: str, limit: int) -> int:
        slots = self._slots.get(slot)
        return max(0, limit - slots.held) if slots else limit

    def waiting(self, slot: str) -> int:
        slots = self._slots.get(slot)
        return len(slots.waiting) if slots else 0

    async def take(self, slot: str, limit: int, seconds: float) -> bool:
        slots = self._slots.get(slot)
        if slots is None:
            slots = self._slots[slot] = _Slots()
        if slots.held < limit:  # whoever waits has a smaller limit
            slots.held += 1
            return True
        return seconds > 0 and await self._wait(slot, slots, limit, seconds)

    async def _wait(self, slot: str, slots: _Slots, limit: int, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        waiter = (limit, turn)
        slots.waiting.append(waiter)
        alarm = loop.call_later(seconds, _give_up, turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result():
                self.give(slot)  # its turn came as it left
            raise
        finally:
            alarm.cancel()
            with suppress(ValueError):  # whose turn came has left the line
                slots.waiting.remove(waiter)

    def give(self, slot: str) -> None:
        slots = self._slots.get(slot)
        if slots is None:
            return
        slots.held = max(0, slots.held - 1)
        slots.wake()
        if not (slots.held or slots.waiting):
            del self._slots[slot]


def _give_up(turn: asyncio.Future[bool]) -> None:
    if not turn.done():
        turn.set_result(False)
