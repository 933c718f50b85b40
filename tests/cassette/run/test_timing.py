"""The pauses an answer is given with: none, as recorded, a part of them, none too long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain

import pytest

from adapters.errors import GatewayError, Truncated
from adapters.protocol import ChatRequest, Event, Finish, Opened, TextDelta, Upstream
from middleware.cassettes.replay import FAST, Performance, Performer, Timing
from middleware.cassettes.replay.performance import Batch
from middleware.wrappers.base import Batches
from tests.support.dialogue import user
from tests.support.fold import run

OPENED = Opened((), Upstream("up"))
AT = (100.0, 140.0, 140.0, 440.0)
"""Milliseconds since the question."""


def performance(error: GatewayError | None = None) -> Performance:
    begin = (OPENED, TextDelta("a"))
    events = [begin, (TextDelta("b"),), (TextDelta("c"),), (Finish("stop"),)]
    batches = tuple(Batch(at, batch) for at, batch in zip(AT, events, strict=True))
    return Performance(batches if error is None else batches[:2], error, error_at=440.0)


def apart(batch: tuple[Event, ...]) -> Sequence[tuple[Event, ...]]:
    return batch.apart if type(batch) is Batches else (batch,)


def heard_at(timing: Timing, error: GatewayError | None = None) -> list[float]:
    """When each batch came; or the error, where there is one."""

    async def listen() -> list[float]:
        loop = asyncio.get_running_loop()
        began, times = loop.time(), list[float]()
        stream = Performer(performance(error), timing).stream(ChatRequest("m", (user("hi"),)))
        with suppress(GatewayError):
            times.extend([loop.time() - began async for one in stream for _ in apart(one)])
        return times or [loop.time() - began]

    return run(listen())


ROWS: Sequence[tuple[Timing, Sequence[float]]] = (
    (FAST, (0, 0, 0, 0)),
    (Timing(1.0), (0.1, 0.14, 0.14, 0.44)),
    (Timing(4.0), (0.025, 0.035, 0.035, 0.11)),
    (Timing(1.0, longest=0.05), (0.05, 0.09, 0.09, 0.14)),
    (Timing(2.0, longest=0.05), (0.025, 0.045, 0.045, 0.07)),
)


@pytest.mark.parametrize(("timing", "expected"), ROWS)
def test_each_batch_comes_when_it_is_due(timing: Timing, expected: Sequence[float]) -> None:
    for at, due in zip(heard_at(timing), expected, strict=True):
        assert due - 0.002 <= at < due + 0.3


def test_what_ends_an_answer_is_waited_for_too() -> None:
    (last,) = heard_at(Timing(4.0), Truncated("cut"))
    assert last >= 0.108


@pytest.mark.parametrize("count", [1, 3, 4, 16, 17, 40])
@pytest.mark.parametrize("ends", [True, False])
def test_what_is_not_waited_for_is_given_together_and_known_apart(count: int, ends: bool) -> None:
    batches: list[tuple[Event, ...]] = [(OPENED, TextDelta("a"))]
    batches += [(TextDelta(f"{at}"),) for at in range(count)]
    if ends:
        batches[-1] = (Finish("stop"),)

    async def listen() -> list[tuple[Event, ...]]:
        request = ChatRequest("m", (user("hi"),))
        return [one async for one in Performer(Performance.of(*batches)).stream(request)]

    given = run(listen())
    assert [*chain.from_iterable(map(apart, given))] == batches
    assert [*chain.from_iterable(given)] == [*chain.from_iterable(batches)]
    assert len(given) < 4 + 2 * count // 16
    assert not ends or given[-1] == batches[-1]


def test_many_batches_without_pauses_let_others_have_their_turn() -> None:
    batches = [(OPENED, TextDelta("a")), *[(TextDelta("b"),)] * 500]
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def go() -> None:
        counting = asyncio.create_task(count())
        request = ChatRequest("m", (user("hi"),))
        async for _ in Performer(Performance.of(*batches)).stream(request):
            pass
        counting.cancel()
        await asyncio.gather(counting, return_exceptions=True)

    run(go())
    assert turns > 20
