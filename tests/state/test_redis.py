"""Several gateways count in one Redis as one of them counts in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from middleware.state.memory import MemoryState
from middleware.state.redis import RedisState
from middleware.state.store import Hold, State
from tests.state.server import RedisServer

MINUTE, MONTH = 60.0, 31 * 86400.0


def hold(counter: str, amount: float = 1.0, limit: float = float("inf")) -> Hold:
    return Hold(
        counter,
        amount,
        limit,
        MONTH if counter.startswith("usd") else MINUTE,
        not counter.startswith("usd"),
    )


@asynccontextmanager
async def gateways(server: RedisServer, count: int = 2) -> Any:
    """States of several gateways, and what they say."""
    said: list[str] = []
    states = [RedisState(server.url, said.append) for _ in range(count)]
    async with AsyncExitStack() as stack:
        for state in states:
            stack.push_async_callback(state.close)
            await state.sums(["nothing"])
            assert state.well
        yield states, said


async def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends
        await asyncio.sleep(0.02)


COUNTERS = ("requests", "usd", "open")
STEPS = some.lists(
    some.one_of(
        some.tuples(
            some.just("take"),
            some.integers(0, 3),
            some.sets(some.sampled_from(COUNTERS), min_size=1),
            some.integers(0, 4),
            some.integers(1, 9),
        ),
        some.tuples(
            some.just("settle"),
            some.integers(0, 3),
            some.sets(some.sampled_from(COUNTERS)),
            some.integers(0, 9),
        ),
        some.tuples(some.just("mark"), some.integers(0, 2), some.integers(1, 60), some.booleans()),
    ),
    max_size=12,
)


async def done(states: Sequence[State], step: Any, prefix: str) -> Any:
    """One step, by the gateway whose request it is, and all that can be seen after it."""
    match step:
        case "take", request, counters, amount, limit:
            holds = [hold(f"{one}:{prefix}", amount, limit) for one in sorted(counters)]
            taken = await states[request % len(states)].take(f"{prefix}{request}", holds)
            seen: Any = (taken.sums, taken.refused, taken.wait == 0)
        case "settle", request, counters, amount:
            amounts = {f"{one}:{prefix}": float(amount) for one in sorted(counters)}
            seen = await states[request % len(states)].settle(f"{prefix}{request}", amounts)
        case _, name, seconds, later:
            await states[name % len(states)].mark(
                f"{prefix}{name}", f"{name} {seconds}", seconds, later
            )
            seen = None
    sums = await states[0].sums([f"{one}:{prefix}" for one in COUNTERS])
    marks = await states[-1].read([f"{prefix}{name}" for name in range(3)])
    return seen, [round(one, 6) for one in sums], [one and one.text for one in marks]


def test_gateways_count_together_as_one_in_memory(server: RedisServer) -> None:
    number = iter(range(10**6))

    async def both(steps: Sequence[Any], states: Sequence[State]) -> None:
        prefix, memory = f"h{next(number)}", MemoryState()
        for step in steps:
            expected = await done([memory], step, prefix)
            assert await done(states, step, prefix) == expected

    with asyncio.Runner() as runner:
        states = [RedisState(server.url, print) for _ in range(2)]

        @settings(max_examples=60)
        @given(STEPS)
        def alike(steps: Sequence[Any]) -> None:
            runner.run(both(steps, states))

        alike()
        for state in states:
            runner.run(state.close())


def test_a_limit_holds_over_two_gateways(server: RedisServer) -> None:
    async def run() -> None:
        async with gateways(server) as (states, _):
            holds = [hold("requests:two", 1, 60)]
            taken = await asyncio.gather(*(states[i % 2].take(f"r{i}", holds) for i in range(140)))
            assert sum(not one.refused for one in taken) == 60
            assert 59 < next(one.wait for one in taken if one.refused) <= 60.3

    asyncio.run(run())


def test_what_was_begun_is_known_however_often_its_asker_is_cancelled(
    server: RedisServer,
) -> None:
    async def run() -> None:
        async with gateways(server, 1) as (states, _):
            (state,) = states
            taking = asyncio.create_task(state.take("left", [hold("concurrent:left")]))
            for _ in range(3):
                await asyncio.sleep(0)
                taking.cancel()
            await asyncio.wait([taking])
            assert taking.cancelled()
            await state.settle("left", {"concurrent:left": 0.0})
            await asyncio.sleep(0.1)
            assert await state.sums(["concurrent:left"]) == [0]

    asyncio.run(run())
