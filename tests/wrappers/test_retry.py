"""Asking again: when, how often, and when not."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from adapters.errors import GatewayError, RateLimited, Refused, Truncated, Unavailable
from adapters.protocol import (
    ChatRequest,
    Event,
    Finish,
    Opened,
    RequestContext,
    TextDelta,
    Upstream,
)
from middleware.wrappers.retry import Budget, Retry
from tests.support.adapters import FakeAdapter

REQUEST = ChatRequest("m", ({"role": "user", "content": "hi"},))
OPENED = (Opened((), Upstream("up")), TextDelta("hello"))
END = (Finish("stop"),)


class Failing(FakeAdapter):
    """Fails as told, one list entry a call, then answers; `seconds` it works before it does."""

    def __init__(
        self, failures: Sequence[GatewayError], after_opening: bool = False, seconds: float = 0.0
    ) -> None:
        before = (float(seconds), OPENED) if after_opening else (float(seconds),)
        failing = [(*before, error) for error in failures]
        super().__init__(*failing, usual=(float(seconds), OPENED, END))


async def _all(retry: Retry) -> list[tuple[Event, ...]]:
    return [batch async for batch in retry.stream(REQUEST)]


def ask(
    inner: Failing, budget: Budget | None = None, total: float = 600
) -> list[tuple[Event, ...]]:
    retry = Retry(inner, budget or Budget(), times=2, total=total, first_pause=0.001)
    return asyncio.run(_all(retry))


@pytest.mark.parametrize("failures", range(3))
def test_a_passing_failure_is_asked_again(failures: int) -> None:
    inner = Failing([Unavailable("away")] * failures)
    assert ask(inner) == [OPENED, END]
    assert len(inner.asked) == failures + 1


def test_the_third_failure_is_the_answer_and_asks_the_client_not_to_multiply_it() -> None:
    inner = Failing([Unavailable("away") for _ in range(3)])
    with pytest.raises(Unavailable) as caught:
        ask(inner)
    assert len(inner.asked) == 3
    assert caught.value.again == "elsewhere"


@pytest.mark.parametrize("error", [Refused("no"), Truncated("cut")])
def test_what_asking_cannot_mend_is_not_asked_again(error: GatewayError) -> None:
    inner = Failing([error])
    with pytest.raises(type(error)):
        ask(inner)
    assert len(inner.asked) == 1


def test_nothing_is_asked_again_once_an_event_has_left() -> None:
    inner = Failing([Unavailable("away")], after_opening=True)
    with pytest.raises(Unavailable):
        ask(inner)
    assert len(inner.asked) == 1


@pytest.mark.parametrize(
    ("retry_after", "calls"),
    [("0", 2), ("0.01", 2), ("-5", 2), ("11", 1), ("nan", 1), ("inf", 1), ("Wed, 18 Nov 2026", 1)],
)
def test_the_upstreams_own_pause_is_kept_if_it_is_short(retry_after: str, calls: int) -> None:
    inner = Failing([RateLimited("slow down", retry_after=retry_after)])
    if calls == 1:
        with pytest.raises(RateLimited):
            ask(inner)
    else:
        assert ask(inner) == [OPENED, END]
    assert len(inner.asked) == calls


@pytest.mark.parametrize("retry_after", ["0", "-5", "0.0", "-inf"])
def test_an_upstream_that_asks_for_no_pause_gets_our_own(retry_after: str) -> None:
    inner = Failing([RateLimited("slow down", retry_after=retry_after) for _ in range(2)])
    random.seed(1)
    began = time.monotonic()
    retry = Retry(inner, Budget(), times=2, first_pause=0.1)
    assert asyncio.run(_all(retry)) == [OPENED, END]
    random.seed(1)
    assert time.monotonic() - began >= random.uniform(0, 0.1) + random.uniform(0, 0.2)


def test_pauses_add_up_to_no_more_than_a_client_would_wait() -> None:
    inner = Failing([RateLimited("slow down", retry_after="0.02") for _ in range(3)])
    with pytest.raises(RateLimited):
        ask(inner)
    assert len(inner.asked) == 3
    long = Failing([RateLimited("x", retry_after="0.01"), RateLimited("x", retry_after="9.995")])
    with pytest.raises(RateLimited):
        ask(long)
    assert len(long.asked) == 2


def test_no_attempt_begins_after_the_time_of_all_attempts() -> None:
    inner = Failing([Unavailable("away")])
    with pytest.raises(Unavailable):
        ask(inner, total=0)
    assert len(inner.asked) == 1


@pytest.mark.parametrize(("seconds", "calls"), [(0.2, 1), (0.06, 2), (0, 3)])
def test_what_took_long_to_fail_is_not_asked_again(seconds: float, calls: int) -> None:
    """A 500 after 75 seconds is one call; the client is told not to repeat it either."""
    inner = Failing([Unavailable("away") for _ in range(3)], seconds=seconds)
    retry = Retry(inner, Budget(), first_pause=0.001, failing=0.1)
    with pytest.raises(Unavailable) as caught:
        asyncio.run(_all(retry))
    assert (len(inner.asked), caught.value.again) == (calls, "elsewhere")


def test_a_pause_the_upstream_asked_for_is_no_time_it_took() -> None:
    inner = Failing([RateLimited("slow down", retry_after="0.15") for _ in range(2)])
    retry = Retry(inner, Budget(), failing=0.1)
    assert asyncio.run(_all(retry)) == [OPENED, END]
    assert len(inner.asked) == 3


def test_a_later_attempt_knows_when_all_must_end() -> None:
    inner = Failing([Unavailable("away")])
    ask(inner)
    first, second = inner.asked
    assert first.call.deadline is None
    assert second.call.deadline is not None


def test_a_deadline_that_was_set_outside_is_not_moved() -> None:
    inner = Failing([Unavailable("away")])

    async def script() -> float:
        deadline = asyncio.get_running_loop().time() + 30
        request = replace(REQUEST, call=RequestContext(deadline=deadline))
        retry = Retry(inner, Budget(), first_pause=0.001)
        assert [batch async for batch in retry.stream(request)] == [OPENED, END]
        return deadline

    deadline = asyncio.run(script())
    assert [request.call.deadline for request in inner.asked] == [deadline] * 2


def test_no_more_than_a_share_of_the_requests_repeat_themselves_at_once() -> None:
    budget = Budget(at_work=99, repeating=20)
    with pytest.raises(Unavailable):
        ask(Failing([Unavailable("away")]), budget)
    assert (budget.at_work, budget.repeating) == (99, 20)
    budget.repeating = 19
    assert ask(Failing([Unavailable("away")]), budget) == [OPENED, END]
    assert (budget.at_work, budget.repeating) == (99, 19)


def test_a_few_requests_may_always_repeat_themselves() -> None:
    assert Budget(at_work=1, repeating=Budget.LEAST - 1).allows()
    assert not Budget(at_work=1, repeating=Budget.LEAST).allows()
