"""What is of the machine is one, whatever worker asks, and outlives a worker's death."""

from __future__ import annotations

import asyncio
import math
import socket
import time

import pytest

from middleware.machine.channel import Channel
from middleware.machine.memory import MemoryBoard
from middleware.server.workers.member import Member
from middleware.state.remote import RemoteState
from middleware.state.store import Hold
from tests.server.workers.machine import machine, until

SLOT, NAME = "up#1", "up/m"
LONG = 3600.0


def state_of(member: Member) -> RemoteState:
    assert member.state is not None
    return member.state


def test_slots_are_of_all_workers_and_the_line_is_one() -> None:
    async def run() -> None:
        async with machine() as here:
            one, two = (await here.worker()).board, (await here.worker()).board
            assert await one.take(SLOT, 2, 0)
            assert await two.take(SLOT, 2, 0)
            assert not await one.take(SLOT, 2, 0)
            await until(lambda: one.free(SLOT, 2) == 0)
            first = asyncio.create_task(two.take(SLOT, 2, 5))
            await until(lambda: one.waiting(SLOT) == 1)
            second = asyncio.create_task(one.take(SLOT, 2, 5))
            await until(lambda: two.waiting(SLOT) == 2)
            one.give(SLOT)
            assert await first
            assert not second.done()
            two.give(SLOT)
            assert await second

    asyncio.run(run())


def test_who_leaves_the_line_holds_nothing() -> None:
    async def run() -> None:
        async with machine() as here:
            one, two = (await here.worker()).board, (await here.worker()).board
            assert await one.take(SLOT, 1, 0)
            waiting = asyncio.create_task(two.take(SLOT, 1, 60))
            await until(lambda: one.waiting(SLOT) == 1)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await until(lambda: one.waiting(SLOT) == 0)
            assert not await two.take(SLOT, 1, 0.01)
            one.give(SLOT)
            await until(lambda: two.free(SLOT, 1) == 1)
            assert await two.take(SLOT, 1, 0)

    asyncio.run(run())


def test_what_a_dead_worker_held_is_free() -> None:
    async def run() -> None:
        async with machine() as here:
            one, two = await here.worker(), await here.worker()
            assert await one.board.take(SLOT, 1, 0)
            lasting = Hold("concurrent:a", 1, 1, LONG)
            brief = Hold("requests:a", 1, 1, 60)
            assert not (await state_of(one).take("r1", [lasting, brief])).refused
            waiting = asyncio.create_task(two.board.take(SLOT, 1, 5))
            await until(lambda: two.board.waiting(SLOT) == 1)
            await here.kill(0)
            assert await waiting
            assert here.orphans == 1
            assert not (await state_of(two).take("r2", [lasting])).refused
            # It was a request, whatever became of it.
            assert (await state_of(two).take("r3", [brief])).refused == "requests:a"

    asyncio.run(run())


def test_a_breaker_opens_for_all_and_one_alone_probes() -> None:
    async def run() -> None:
        clock = time.monotonic()
        async with machine(MemoryBoard(now=lambda: clock)) as here:
            one, two = (await here.worker()).board, (await here.worker()).board
            for board in (one, two):
                for _ in range(10):
                    board.leave(NAME, False)
            await until(lambda: one.breaker(NAME) == two.breaker(NAME) == "open")
            assert await two.enter(NAME) == "refused"
            assert 0 < two.reopens(NAME) <= 10
            late = (await here.worker()).board
            await until(lambda: late.breaker(NAME) == "open")
            clock += 11
            for board in (one, two):  # as time would
                board.breaker_told(NAME, time.monotonic() - 1)
            assert {await one.enter(NAME), await two.enter(NAME)} == {"probe", "refused"}
            one.leave(NAME, True, probe=True)
            await until(lambda: two.breaker(NAME) == "closed")
            assert await two.enter(NAME) == "call"

    asyncio.run(run())


def test_what_a_worker_that_probed_had_is_free_when_it_dies() -> None:
    async def run() -> None:
        clock = time.monotonic()
        async with machine(MemoryBoard(now=lambda: clock)) as here:
            one, two = (await here.worker()).board, (await here.worker()).board
            for _ in range(20):
                one.leave(NAME, False)
            await until(lambda: one.breaker(NAME) == two.breaker(NAME) == "open")
            clock += 11
            for board in (one, two):
                board.breaker_told(NAME, time.monotonic() - 1)
            assert await one.enter(NAME) == "probe"
            assert await one.take(SLOT, 1, 0)
            await here.kill(0)
            assert await two.take(SLOT, 1, 0)
            assert await two.enter(NAME) == "probe"

    asyncio.run(run())


def test_limits_hold_over_all_workers() -> None:
    async def run() -> None:
        async with machine() as here:
            states = [state_of(await here.worker()) for _ in range(3)]
            hold = Hold("requests:a", 1, 5, 60)
            taken = await asyncio.gather(
                *(
                    state.take(f"{number}/{index}", [hold])
                    for number in range(4)
                    for index, state in enumerate(states)
                )
            )
            assert [bool(one.refused) for one in taken].count(False) == 5
            one, two, _ = states
            await one.take("money", [Hold("spent:a", 2.0, math.inf, LONG, sliding=False)])
            await one.settle("money", {"spent:a": 0.5})
            await one.mark("rest:k", "5", 60)
            assert await one.sums(["spent:a"]) == [0.5]
            assert await two.sums(["spent:a"]) == [0.5]
            found = await two.read(["rest:k", "rest:other"])
            assert found[0] is not None
            assert (found[0].text, found[1]) == ("5", None)

    asyncio.run(run())


def test_without_the_hub_a_worker_decides_for_itself() -> None:
    async def run() -> None:
        async with machine() as here:
            alone = await here.worker()
            await here.kill(0)
            await until(lambda: here.orphans == 1)
            board, state = alone.board, state_of(alone)
            assert not state.well
            assert await board.take(SLOT, 1, 5)
            assert not await board.take(SLOT, 1, 5)
            board.give(SLOT)
            assert await board.take(SLOT, 1, 5)
            assert await board.enter(NAME) == "call"
            hold = Hold("requests:a", 1, 1, 60)
            assert not (await state.take("r1", [hold])).refused
            assert (await state.take("r2", [hold])).refused

    asyncio.run(run())


class Echo:
    def told(self, word: str, values: object) -> None: ...

    def asked(self, word: str, values: object) -> object:
        return [word, values]

    def lost(self) -> None: ...


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_messages_of_any_size_arrive_whole(size: int) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        here, there = Channel(Echo()), Channel(Echo())
        left, right = socket.socketpair()
        await loop.create_unix_connection(lambda: here, sock=left)
        await loop.create_unix_connection(lambda: there, sock=right)
        texts = ["é" * size for _ in range(5)]
        asked = [here.ask(5, "say", number, text) for number, text in enumerate(texts)]
        answers = await asyncio.gather(*asked, there.ask(5, "back"))
        assert answers == [*(["say", [n, text]] for n, text in enumerate(texts)), ["back", []]]
        here.close()
        there.close()

    asyncio.run(run())
