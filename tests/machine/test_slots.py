"""Slots of one process: first come, first served, and who leaves loses its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from middleware.machine.memory import MemoryBoard

LONG = 5.0


def play(script: Callable[[MemoryBoard], Awaitable[None]]) -> MemoryBoard:
    board = MemoryBoard()

    async def run() -> None:
        await asyncio.wait_for(script(board), LONG)

    asyncio.run(run())
    return board


async def rest() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_waiters_are_served_in_the_order_of_asking() -> None:
    served: list[int] = []

    async def script(board: MemoryBoard) -> None:
        assert await board.take("up", 1, 0)

        async def ask(number: int) -> None:
            assert await board.take("up", 1, LONG)
            served.append(number)
            board.give("up")

        asking = [asyncio.create_task(ask(number)) for number in range(5)]
        await rest()
        assert (board.free("up", 1), board.waiting("up")) == (0, 5)
        board.give("up")
        await asyncio.gather(*asking)

    board = play(script)
    assert served == [0, 1, 2, 3, 4]
    assert (board.free("up", 1), board.waiting("up")) == (1, 0)


@pytest.mark.parametrize("seconds", [0, 0.02])
def test_without_a_slot_in_time_there_is_none(seconds: float) -> None:
    async def script(board: MemoryBoard) -> None:
        assert await board.take("up", 1, 0)
        assert not await board.take("up", 1, seconds)
        board.give("up")
        assert await board.take("up", 1, 0)

    play(script)


@pytest.mark.parametrize("its_turn_came", [False, True])
def test_who_leaves_passes_its_turn_on(its_turn_came: bool) -> None:
    async def script(board: MemoryBoard) -> None:
        assert await board.take("up", 1, 0)
        leaver = asyncio.create_task(board.take("up", 1, LONG))
        await rest()
        other = asyncio.create_task(board.take("up", 1, LONG))
        await rest()
        if its_turn_came:
            board.give("up")
            leaver.cancel()
        else:
            leaver.cancel()
            await rest()
            board.give("up")
        assert await other
        assert leaver.cancelled()
        assert board.free("up", 1) == 0

    play(script)


def test_a_smaller_limit_does_not_hold_up_a_larger_one() -> None:
    async def script(board: MemoryBoard) -> None:
        assert await board.take("up", 3, 0)
        assert await board.take("up", 3, 0)
        small = asyncio.create_task(board.take("up", 2, LONG))
        await rest()
        assert await board.take("up", 3, 0)
        board.give("up")
        board.give("up")
        assert await small

    play(script)


Steps = st.lists(st.sampled_from(["take", "give", "leave"]), max_size=40)


@settings(max_examples=60, deadline=None)
@given(Steps)
def test_never_more_than_the_limit_and_none_is_lost(steps: list[str]) -> None:
    async def script(board: MemoryBoard) -> None:
        asking: list[asyncio.Task[bool]] = []
        held = 0
        for step in steps:
            if step == "take":
                asking.append(asyncio.create_task(board.take("up", 2, LONG)))
            elif step == "give" and held:
                board.give("up")
                held -= 1
            elif step == "leave" and asking:
                asking.pop().cancel()
            await rest()
            held += sum(task.done() for task in asking)
            asking = [task for task in asking if not task.done()]
            assert held <= 2
            assert held == 2 - board.free("up", 2)
            assert len(asking) == board.waiting("up")
            assert held == 2 or not asking
        for task in asking:
            task.cancel()

    play(script)
