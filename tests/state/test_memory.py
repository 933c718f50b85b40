"""What counts, for how long, and that nothing is kept without end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from middleware.state.counter import BUCKETS
from middleware.state.memory import MemoryState
from middleware.state.store import Hold, Mark

MINUTE, MONTH = 60.0, 31 * 86400.0
COUNTERS = ("requests", "tokens", "usd")
STEPS = some.lists(
    some.one_of(
        some.tuples(
            some.just("take"),
            some.integers(0, 3),
            some.dictionaries(some.sampled_from(COUNTERS), some.integers(0, 5), min_size=1),
            some.integers(1, 12),
        ),
        some.tuples(
            some.just("settle"),
            some.integers(0, 3),
            some.dictionaries(some.sampled_from(COUNTERS), some.integers(0, 5)),
        ),
        some.tuples(some.just("wait"), some.integers(0, 700)),
    ),
    max_size=25,
)


class Time:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Plain:
    """The same with a list of all that ever counted."""

    def __init__(self) -> None:
        self.parts: list[list[Any]] = []
        """Counter, amount, when it ends, of which request."""

    def sum(self, counter: str, now: float) -> float:
        return float(sum(part[1] for part in self.parts if part[0] == counter and part[2] > now))

    def take(self, request: int, amounts: dict[str, int], limit: int, now: float) -> str:
        for counter in amounts:
            if self.sum(counter, now) >= limit:
                return counter
        for counter, amount in amounts.items():
            held = self.held(request, counter)
            whole = amount + sum(part[1] for part in held)
            self.parts = [part for part in self.parts if part not in held]
            self.parts.append([counter, whole, _end(counter, now), request])
        return ""

    def held(self, request: int, counter: str) -> list[list[Any]]:
        return [part for part in self.parts if part[0] == counter and part[3] == request]

    def settle(self, request: int, amounts: dict[str, int], now: float) -> None:
        for counter, amount in amounts.items():
            if held := self.held(request, counter):
                self.parts = [part for part in self.parts if part not in held]
                ends = float("inf") if counter == "usd" else _end(counter, now)
                self.parts.append([counter, amount, ends, -1])


def _end(counter: str, now: float) -> float:
    life = 3600.0 if counter == "usd" else MINUTE
    return ceil((now + life) / (life / BUCKETS)) * (life / BUCKETS)


@given(STEPS)
def test_it_counts_as_a_plain_list_would(steps: Sequence[Any]) -> None:
    clock, plain = Time(), Plain()
    state = MemoryState(clock)

    async def run() -> None:
        for step in steps:
            match step:
                case "wait", tenths:
                    clock.now += tenths / 10 + 0.001
                case "take", request, amounts, limit:
                    holds = [
                        Hold(name, amount, limit, *((MONTH, False) if name == "usd" else (MINUTE,)))
                        for name, amount in amounts.items()
                    ]
                    taken = await state.take(str(request), holds)
                    assert taken.refused == plain.take(request, amounts, limit, clock.now)
                case _, request, amounts:
                    await state.settle(str(request), amounts)
                    plain.settle(request, amounts, clock.now)
            found = await state.sums(COUNTERS)
            assert found == pytest.approx([plain.sum(name, clock.now) for name in COUNTERS])

    asyncio.run(run())


def test_of_a_minute_no_more_than_the_limit_and_then_as_soon_as_one_ends() -> None:
    clock = Time()
    state = MemoryState(clock)
    hold = [Hold("requests:a", 1, 3, MINUTE)]

    async def run() -> None:
        let_in = []
        for number in range(4000):
            taken = await state.take(f"{number}", hold)
            if not taken.refused:
                let_in.append(clock.now)
            else:
                assert 0 < taken.wait <= 60.3
            clock.now += 0.05
        assert len(let_in) >= 9
        assert all(later - first >= 60 for first, later in zip(let_in, let_in[3:], strict=False))

    asyncio.run(run())


def test_a_refused_request_takes_nothing() -> None:
    async def run() -> None:
        state = MemoryState()
        holds = [Hold("a", 1, 9, MINUTE), Hold("b", 1, 1, MINUTE)]
        assert not (await state.take("1", holds)).refused
        taken = await state.take("2", holds)
        assert (taken.refused, taken.sums) == ("b", {"a": 1, "b": 1})
        assert await state.sums(["a", "b"]) == [1, 1]

    asyncio.run(run())


def test_nothing_is_kept_without_end() -> None:
    clock = Time()
    state = MemoryState(clock, most=2048)

    async def run() -> None:
        await state.take("r", [Hold("usd:a", 1, 9, MONTH, sliding=False)])
        await state.settle("r", {"usd:a": 5.0})
        for number in range(10_000):
            clock.now += 0.01
            await state.take(f"{number}", [Hold(f"requests:{number}", 1, 9, MINUTE)])
            await state.mark(f"moved:{number}", "b", MINUTE)
        for table in (state.counters, state.marks, state._requests):
            assert len(table.kept) <= 2048
        assert await state.sums(["usd:a"]) == [5.0]  # what lasts longest stays

    asyncio.run(run())


def test_marks_end_and_a_later_one_stays() -> None:
    clock = Time()
    state = MemoryState(clock)

    async def run() -> None:
        await state.mark("a", "long", 60)
        await state.mark("a", "short", 5, later=True)
        assert await state.read(["a", "b"]) == [Mark("long", clock.now + 60), None]
        await state.mark("a", "short", 5)
        clock.now += 6
        assert await state.read(["a"]) == [None]

    asyncio.run(run())


def test_a_state_is_marked_as_long_as_its_last_mark() -> None:
    clock = Time()
    state = MemoryState(clock)
    seen = [state.marked]
    asyncio.run(state.mark("rest:a", "5", 60))
    asyncio.run(state.mark("rest:b", "5", 10))
    for seconds in (59, 1):
        clock.now += seconds
        seen.append(state.marked)
    assert seen == [False, True, False]
