"""`Queue`: slots are held until the end of a call, whatever its end; who waits, waits in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from adapters.errors import GatewayError
from adapters.protocol import Journey
from middleware.state.memory import MemoryState
from middleware.state.store import Mark
from middleware.wrappers.calls import UpstreamFull, WaitedOut
from middleware.wrappers.route import Route
from tests.support.adapters import FakeAdapter, Step, Wait
from tests.wrappers.guards.guarded import (
    END,
    OPENED,
    TEXT,
    THREE,
    Guarding,
    cancelled,
    failure,
    run,
    told,
)

ONE = "max_concurrent = 1\nqueue = 3"


class Upstream(FakeAdapter):
    """Answers each request when it is told to."""

    def __init__(self, *before: Step, after: tuple[Step, ...] = (END,)) -> None:
        self.waits: list[Wait] = []
        self.steps = (before, after)
        super().__init__(usual=lambda _: self._answer())

    def _answer(self) -> tuple[Step, ...]:
        self.waits.append(Wait())
        before, after = self.steps
        return (*before, self.waits[-1], *after)


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_what_waits_is_asked_in_order_and_the_wait_is_no_time_of_the_call() -> None:
    leaf = Upstream((OPENED, TEXT))
    guarding = Guarding(ONE, leaf)
    journeys = [Journey() for _ in range(3)]

    async def script() -> None:
        asking = [asyncio.create_task(guarding.ask(journey)) for journey in journeys]
        for number in range(3):
            await settled()
            assert len(leaf.asked) == number + 1
            assert guarding.ring.queued() == 2 - number
            await asyncio.sleep(0.01)
            leaf.waits[number].over.set()
        assert await asyncio.gather(*asking) == [None] * 3

    run(script())
    assert [told(journey) for journey in journeys] == [["m=ok"]] * 3
    ended = [journey.calls()[0].ended or 0.0 for journey in journeys]
    assert ended[0] <= journeys[1].calls()[0].began
    assert journeys[0].queued < 0.01 <= journeys[1].queued < journeys[2].queued


def test_without_a_slot_in_time_it_is_full_and_was_not_asked() -> None:
    leaf, journey = Upstream(), Journey()
    guarding = Guarding("max_concurrent = 1\nqueue = 0.05", leaf)

    async def script() -> GatewayError | None:
        holder = asyncio.create_task(guarding.ask())
        await settled()
        error = await guarding.ask(journey)
        await cancelled(holder)
        return error

    error = run(script())
    assert isinstance(error, UpstreamFull)
    assert (error.status, error.code, error.retry_after) == (503, "overloaded", "1")
    assert told(journey) == ["m=full"]
    assert journey.queued >= 0.04
    assert len(leaf.asked) == 1
    assert guarding.ring.breaker(guarding.name) == "closed"


def test_the_requests_deadline_ends_the_wait() -> None:
    leaf, journey = Upstream(), Journey()
    guarding = Guarding(ONE, leaf)

    async def script() -> GatewayError | None:
        holder = asyncio.create_task(guarding.ask())
        await settled()
        error = await guarding.ask(journey, deadline=asyncio.get_running_loop().time() + 0.02)
        await cancelled(holder)
        return error

    error = run(script())
    assert isinstance(error, WaitedOut)
    assert error.status == 504
    assert told(journey) == ["m=full"]


def test_who_leaves_while_it_waits_was_no_call_and_takes_no_slot() -> None:
    leaf, journey = Upstream(), Journey()
    guarding = Guarding(ONE, leaf)

    async def script() -> None:
        holder = asyncio.create_task(guarding.ask())
        await settled()
        leaver = asyncio.create_task(guarding.ask(journey))
        await settled()
        await cancelled(leaver)
        last = asyncio.create_task(guarding.ask())
        await settled()
        leaf.waits[0].over.set()
        await settled()
        leaf.waits[1].over.set()
        await asyncio.gather(holder, last)

    run(script())
    assert journey.steps == []
    assert len(leaf.asked) == 2


@pytest.mark.parametrize("end", ["stream", "error", "left", "left while it began"])
@pytest.mark.parametrize("upstream", [ONE, f"{ONE}\n{THREE}"])
def test_whatever_its_end_the_slot_is_free_again(end: str, upstream: str) -> None:
    before: tuple[Step, ...] = () if end == "left while it began" else ((OPENED, TEXT),)
    leaf = Upstream(*before, after=(failure(500),) if end == "error" else (END,))
    guarding = Guarding(upstream, leaf)

    async def script() -> None:
        asking = [asyncio.create_task(guarding.ask()) for _ in range(3)]
        await settled()
        slots = [guarding.ring.board.free(name, 1) for name in guarding.ring.names]
        assert 0 in slots
        for _ in range(3):
            await settled()
            for wait in leaf.waits:
                wait.over.set()
            if end.startswith("left"):
                for task in asking:
                    task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        assert {guarding.ring.board.free(name, 1) for name in guarding.ring.names} == {1}
        assert await guarding.ring.open_calls() == 0

    run(script())


def test_an_open_breaker_waits_for_no_slot() -> None:
    guarding = Guarding(ONE, FakeAdapter(usual=(failure(500),)))

    async def script() -> None:
        for _ in range(20):
            await guarding.ask()
        assert await guarding.ring.board.take("up", 1, 0)
        async with asyncio.timeout(1):
            await guarding.ask()

    run(script())
    assert len(guarding.leaf.asked) == 20


def test_a_probe_that_finds_no_slot_leaves_the_next_one_to_another() -> None:
    leaf = FakeAdapter(*[(failure(500),)] * 20, usual=((OPENED, TEXT), END))
    guarding = Guarding("max_concurrent = 1\nqueue = 0", leaf)

    async def script() -> None:
        for _ in range(20):
            await guarding.ask()
        guarding.now += 10
        assert await guarding.ring.board.take("up", 1, 0)
        assert isinstance(await guarding.ask(), UpstreamFull)
        guarding.ring.board.give("up")
        assert await guarding.ask() is None

    run(script())


@pytest.mark.parametrize(
    ("upstream", "counting", "built"),
    [
        ("", False, ["Breaker"]),
        ("max_concurrent = 1", False, ["Breaker", "Queue"]),
        ("", True, ["Breaker", "Queue"]),
        (THREE, False, ["Breaker", "Queue", "Rotation"]),
        ('api_key = ["env:KEY_A", "env:NOT_SET"]', False, ["Breaker", "Queue", "Rotation"]),
    ],
)
def test_only_what_is_configured_is_built(upstream: str, counting: bool, built: list[str]) -> None:
    guarding = Guarding(upstream, counting=counting)
    assert [*Route(guarding.guard, "m").nesting] == ["Route", *built, "FakeAdapter"]


class Slow(MemoryState):
    """Answers as from another process: whoever asks waits."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.looked = Wait()

    async def read(self, names: Sequence[str]) -> Sequence[Mark | None]:
        if len(names) == 1:
            self.looked.reached.set()
            await self.looked.over.wait()
        return await super().read(names)


def test_who_leaves_as_its_key_is_looked_at_holds_no_slot() -> None:
    leaf = Upstream((OPENED, TEXT))
    guarding = Guarding(f"{ONE}\n{THREE}", leaf)
    guarding.ring.state = state = Slow(guarding.clock)

    async def script() -> None:
        first = asyncio.create_task(guarding.ask(chosen="up#1"))
        await settled()
        second = asyncio.create_task(guarding.ask(chosen="up#1"))
        await settled()
        leaf.waits[0].over.set()
        await state.looked.until_reached()
        await cancelled(second)
        assert await first is None
        assert guarding.ring.board.free("up#1", 1) == 1

    run(script())


def test_who_waited_for_a_key_that_was_limited_meanwhile_takes_another() -> None:
    leaf = Upstream((OPENED, TEXT))
    guarding = Guarding(f"{ONE}\n{THREE}", leaf)

    async def script() -> None:
        first = asyncio.create_task(guarding.ask(chosen="up#1"))
        await settled()
        second = asyncio.create_task(guarding.ask(chosen="up#1"))
        await settled()
        await guarding.rest("up#1")
        leaf.waits[0].over.set()
        await settled()
        leaf.waits[1].over.set()
        assert [await first, await second] == [None, None]
        assert await guarding.ring.open_calls() == 0

    run(script())
    assert guarding.keys_used()[0] == "secret-A"
    assert guarding.keys_used()[1] in ("secret-B", "secret-C")
