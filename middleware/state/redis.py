"""`RedisState`: counted in Redis by all gateways together, and by each for itself while it is away.

Every count is kept in this process too, so that limits go on where Redis ends; what was spent
meanwhile is added when it is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from middleware.state.claims import NamedClaims
from middleware.state.connection import PREFIX, RedisConnection
from middleware.state.memory import Held, MemoryState
from middleware.state.scripts import ADD, MARK, SETTLE, SUMS, TAKE
from middleware.state.store import CounterLimit, Hold, Home, Mark, Taken

T = TypeVar("T")
_MOST_MISSED = 4096
"""Counters, marks: what else happened while Redis was away is not told."""


_MOST_KEPT_THERE = 1 << 14
_AT_ONCE = 256
"""Counters and marks of one script: Redis answers nobody else meanwhile."""
_EVER = 3e8
"""Seconds."""


class RedisState:
    home: Home = "redis"

    def __init__(self, url: str, say: Callable[[str], None]) -> None:
        """Raises ValueError for an address that cannot be one."""
        self.connection = RedisConnection(url, say, self._returned)
        self._own = MemoryState(self.connection.now)
        self._missed: dict[str, float] = {}
        self._missed_marks: dict[str, Mark] = {}
        self._kept_there: list[Held] = []
        """What requests had when it went, and have no more."""

    @property
    def well(self) -> bool:
        return self.connection.well

    @property
    def marked(self) -> bool:
        return True

    def claims(self, request: str) -> NamedClaims:
        return NamedClaims(self, request)

    async def take(self, request: str, holds: Sequence[Hold]) -> Taken:
        return await _to_the_end(self._take(request, holds)) if holds else Taken({})

    async def _take(self, request: str, holds: Sequence[Hold]) -> Taken:
        now = self.connection.now()
        values: list[Any] = []
        limits = [hold.wanted()[0] for hold in holds]
        had = self._own.held(request, [hold.counter for hold in holds])
        for hold, limit in zip(holds, limits, strict=True):
            counter = self._own.counters.of(limit, now)
            values += [*_lasting(counter.step, hold.seconds), min(hold.limit, 1e308), hold.amount]
            values += [counter.bucket(now), *_shared(had.get(hold.counter))]
        answer = await self.connection.run(TAKE, _names(one.counter for one in holds), *values)
        if answer is None:
            return await self._own.take(request, holds)
        refused, free, texts, totals = answer
        sums = {hold.counter: float(text) for hold, text in zip(holds, texts, strict=True)}
        self._learn(limits, totals)
        if refused:
            full = limits[refused - 1]
            ends = float(free) * self._own.counters.of(full, now).step
            return Taken(sums, full.counter, max(0.0, ends - now))
        await self._own.share(request, holds, now)
        return Taken(sums)

    async def settle(self, request: str, amounts: Mapping[str, float]) -> None:
        await _to_the_end(self._settle(request, amounts))

    async def _settle(self, request: str, amounts: Mapping[str, float]) -> None:
        now = self.connection.now()
        values: list[Any] = []
        held = [*self._own.held(request, amounts).values()]
        await self._own.settle(request, amounts)
        for one in held:
            values += [*_ended(one, now), amounts[one.limit.counter]]
        limits = [one.limit for one in held]
        if not held:
            return
        answer = await self.connection.run(SETTLE, _names(one.counter for one in limits), *values)
        if answer is not None:
            return self._learn(limits, answer[0])
        self._keep(held, amounts)

    def _keep(self, held: Sequence[Held], amounts: Mapping[str, float]) -> None:
        """Redis is to hear of it when it is back."""
        for one in held:
            if one.shared and len(self._kept_there) < _MOST_KEPT_THERE:
                self._kept_there.append(one)
            if not one.limit.sliding:
                self._miss(one.limit.counter, amounts[one.limit.counter])

    def _miss(self, name: str, amount: float) -> None:
        if name in self._missed or len(self._missed) < _MOST_MISSED:
            self._missed[name] = self._missed.get(name, 0.0) + amount
            self._count(name, 0.0)

    def _learn(self, limits: Sequence[CounterLimit], totals: Sequence[bytes]) -> None:
        for limit, total in zip(limits, totals, strict=True):
            if not limit.sliding:
                self._count(limit.counter, float(total))

    def _count(self, name: str, known: float) -> None:
        """What all have spent: from there this process goes on where Redis ends."""
        if (counter := self._own.counters.kept.get(name)) is not None:
            counter.written = max(counter.written, known)
            counter.total = counter.written + self._missed.get(name, 0.0)

    async def sums(self, counters: Sequence[str]) -> Sequence[float]:
        answer = await self.connection.run(SUMS, _names(counters))
        if answer is None:
            return await self._own.sums(counters)
        return [float(text) for text in answer[0]]

    async def read(self, names: Sequence[str]) -> Sequence[Mark | None]:
        found = await self.connection.get([_mark(name) for name in names])
        if found is None:
            marks = await self._own.read(names)
        else:
            marks = [None if text is None else _read(text) for text in found]
        return [one and Mark(one.text, one.until - self.connection.ahead) for one in marks]

    async def mark(self, name: str, text: str, seconds: float, later: bool = False) -> None:
        mark = Mark(text, self.connection.now() + seconds)
        self._own.remember(name, mark, later)
        values = (*_written(mark), max(1, round(seconds * 1000)), int(later))
        answer = await self.connection.run(MARK, [_mark(name)], *values)
        if answer is None and len(self._missed_marks) < _MOST_MISSED:
            self._missed_marks[name] = mark

    async def _returned(self, lost: bool) -> None:
        """Tell Redis what happened without it, and what it lost, before anybody asks it again."""
        if lost:
            await self._restore()
        while self._missed or self._kept_there or self._missed_marks:
            names = [*self._missed][:_AT_ONCE]
            await self._add({name: self._missed.pop(name) for name in names})
            await self._give_back(self._kept_there[:_AT_ONCE])
            await self._tell([*self._missed_marks.items()][:_AT_ONCE])

    async def _restore(self) -> None:
        kept = self._own.counters.kept
        known = [name for name, counter in kept.items() if counter.written]
        for start in range(0, len(known), _AT_ONCE):
            names = known[start : start + _AT_ONCE]
            await self._add({name: self._missed.pop(name, 0.0) for name in names}, lost=True)

    async def _give_back(self, held: Sequence[Held]) -> None:
        values: list[Any] = []
        for one in held:
            values += [*_lasting(one.counter.step, one.limit.seconds), *_shared(one), "0", 0]
        if held:
            await self.connection.send(SETTLE, _names(one.limit.counter for one in held), *values)
            del self._kept_there[: len(held)]

    async def _tell(self, marks: Sequence[tuple[str, Mark]]) -> None:
        now = self.connection.now()
        values: list[Any] = []
        for _, mark in marks:
            values += [*_written(mark), max(1, round((mark.until - now) * 1000)), 1]
        if marks:
            await self.connection.send(MARK, [_mark(name) for name, _ in marks], *values)
        for name, mark in marks:
            if self._missed_marks[name] is mark:
                del self._missed_marks[name]

    async def _add(self, missed: Mapping[str, float], lost: bool = False) -> None:
        kept = self._own.counters.kept
        values: list[Any] = []
        missed = {name: amount for name, amount in missed.items() if name in kept}
        for name, amount in missed.items():
            counter = kept[name]
            left = counter.ends - self.connection.now()
            values += [*_lasting(counter.step, left), counter.written if lost else 0, amount]
        added = not missed
        try:
            if missed:
                await self.connection.send(ADD, _names(missed), *values)
            added = True
        finally:
            for name, amount in missed.items():
                if added:
                    self._count(name, kept[name].written + amount)
                else:
                    self._miss(name, amount)

    async def close(self) -> None:
        await self.connection.close()


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """What was begun in Redis is known here, whatever becomes of who asked."""
    task, left = asyncio.create_task(work), False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:  # more than once, where the gateway stops meanwhile
            left = True
    if left:
        raise asyncio.CancelledError
    return task.result()


def _names(counters: Iterable[str]) -> list[str]:
    return [f"{PREFIX}{name}" for name in counters]


def _mark(name: str) -> bytes:
    return f"{PREFIX}mark:{name}".encode()


def _lasting(step: float, seconds: float) -> tuple[float, int]:
    """The step of a counter, and how long it lives after its last use, in milliseconds."""
    return step, max(1, round(min(seconds + step, _EVER) * 1000))


def _shared(held: Held | None) -> tuple[int | str, float]:
    """What Redis knows that a request has."""
    return (held.bucket, held.amount) if held is not None and held.shared else ("", 0.0)


def _ended(held: Held, now: float) -> Sequence[Any]:
    """What a request had, and the bucket of what it used."""
    bucket = held.counter.bucket(now) if held.limit.sliding else ""
    return *_lasting(held.counter.step, held.limit.seconds), *_shared(held), bucket


def _written(mark: Mark) -> tuple[str, float]:
    return f"{mark.until!r} {mark.text}", mark.until


def _read(text: bytes) -> Mark:
    until, _, said = text.decode().partition(" ")
    return Mark(said, float(until))
