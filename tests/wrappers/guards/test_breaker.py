"""`Breaker`: what it records of every call, what counts as a failure, what it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from adapters.errors import BadRequest, Busy, GatewayError, Truncated, UpstreamError
from adapters.outcomes import Outcome
from adapters.protocol import Finish, Journey
from adapters.wire.failures import NotAccepted, timed_out, unreachable
from middleware.wrappers.calls import ILL, UpstreamOpen
from tests.support.adapters import FakeAdapter, Step, Wait
from tests.wrappers.guards.guarded import (
    ANSWER,
    END,
    OPENED,
    TEXT,
    Guarding,
    cancelled,
    failure,
    run,
    told,
)

QUOTA = b'{"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}'
LONG = b'{"error": {"message": "This model\'s maximum context length is 8 tokens"}}'
FAILURES: list[tuple[GatewayError, Outcome]] = [
    (failure(429), "rate_limited"),
    (failure(429, QUOTA), "quota"),
    (failure(402), "quota"),
    (failure(401), "refused"),
    (failure(403), "refused"),
    (failure(404), "missing"),
    (failure(400), "client"),
    (failure(409), "client"),
    (failure(422), "client"),
    (failure(413), "too_long"),
    (failure(400, LONG), "too_long"),
    (failure(408), "timeout"),
    (failure(500), "failed"),
    (failure(502), "failed"),
    (failure(503), "overloaded"),
    (failure(529), "overloaded"),
    (failure(504), "timeout"),
    (timed_out("up", "did not answer in time"), "timeout"),
    (unreachable("up", NotAccepted()), "unreachable"),
    (UpstreamError("what it sent cannot be read", code="upstream_unreadable"), "failed"),
]


@pytest.mark.parametrize(("error", "outcome"), FAILURES)
def test_what_came_of_a_call_is_recorded_and_5xx_alone_open_it(
    error: GatewayError, outcome: Outcome
) -> None:
    guarding, journey = Guarding(leaf=FakeAdapter(usual=(error,))), Journey()

    async def script() -> None:
        for _ in range(20):
            assert await guarding.ask(journey) is error
        opened = guarding.ring.breaker(guarding.name) == "open"
        assert opened is (outcome in ILL)

    run(script())
    assert told(journey) == [f"m={outcome}"] * 20
    assert journey.calls()[0].error is error


def test_a_good_call_is_recorded_with_its_times_and_its_ends() -> None:
    guarding, journey = Guarding(), Journey()
    assert run(guarding.ask(journey)) is None
    (call,) = journey.calls()
    assert (call.place, call.upstream, call.model, call.key) == ("m", "up", "m-1", "")
    assert (call.outcome, call.opened, call.finish, call.error) == ("ok", OPENED, END, None)
    assert call.first_event is not None
    assert call.ended is not None
    assert call.began <= call.first_event <= call.ended
    assert call.letters == len(TEXT.text)


@pytest.mark.parametrize(
    ("public", "name", "asked", "place"),
    [
        ("or/*", "*", "openai/gpt", "or/openai/gpt"),
        ("or/*-x", "v1-*-y", "v1-gpt-y", "or/gpt-x"),
        ("or/*", "gpt", "gpt", "or/*"),
    ],
)
def test_a_wildcard_is_told_by_the_name_that_was_asked(
    public: str, name: str, asked: str, place: str
) -> None:
    guarding, journey = Guarding(public=public, name=name), Journey()
    guarding.name = asked
    run(guarding.ask(journey))
    assert journey.calls()[0].place == place


def test_a_stream_that_breaks_in_the_middle_is_a_failure() -> None:
    broken: tuple[Step, ...] = ((OPENED, TEXT), Truncated("cut"))
    guarding, journey = Guarding(leaf=FakeAdapter(usual=broken)), Journey()

    async def script() -> None:
        for _ in range(20):
            assert isinstance(await guarding.ask(journey), Truncated)
        assert guarding.ring.breaker(guarding.name) == "open"

    run(script())
    assert told(journey)[0] == "m=failed"


def test_open_it_refuses_without_a_call_and_says_when_to_come_back() -> None:
    guarding, journey = Guarding(leaf=FakeAdapter(usual=(failure(500),))), Journey()

    async def script() -> GatewayError | None:
        for _ in range(20):
            await guarding.ask()
        guarding.now += 3.5
        return await guarding.ask(journey)

    error = run(script())
    assert isinstance(error, UpstreamOpen)
    assert (error.status, error.code, error.retry_after) == (503, "upstream_unavailable", "7")
    assert error.again == "elsewhere"
    assert told(journey) == ["m=open"]
    assert len(guarding.leaf.asked) == 20


def test_half_open_one_alone_is_asked_and_its_first_word_closes_it() -> None:
    wait, journey = Wait(), Journey()
    script_of_probe: tuple[Step, ...] = (wait, (OPENED, TEXT), 5.0, END)
    failing = [(failure(500),)] * 20
    leaf = FakeAdapter(*failing, script_of_probe, usual=ANSWER)
    guarding = Guarding(leaf=leaf)

    async def script() -> None:
        for _ in range(20):
            await guarding.ask()
        guarding.now += 10
        probe = asyncio.create_task(guarding.ask())
        await wait.until_reached()
        for _ in range(3):
            assert isinstance(await guarding.ask(journey), UpstreamOpen)
        wait.over.set()
        await asyncio.sleep(0.01)
        assert guarding.ring.breaker(guarding.name) == "closed"
        assert await guarding.ask() is None
        await cancelled(probe)

    run(script())
    assert told(journey) == ["m=open"] * 3


@pytest.mark.parametrize(("steps", "outcome"), [([(OPENED, TEXT)], "ok"), ([], None)])
def test_a_client_that_leaves_says_nothing_against_the_upstream(
    steps: Sequence[Step], outcome: Outcome | None
) -> None:
    wait, journey = Wait(), Journey()
    leaf = FakeAdapter(usual=(*steps, wait))
    guarding = Guarding(leaf=leaf)

    async def script() -> None:
        for _ in range(25):
            wait.reached.clear()
            asking = asyncio.create_task(guarding.ask(journey))
            await wait.until_reached()
            await cancelled(asking)
        assert guarding.ring.breaker(guarding.name) == "closed"

    run(script())
    assert leaf.closed == 25
    call = journey.calls()[0]
    assert (call.outcome, call.error) == (outcome, None)
    assert call.ended is not None


def test_a_request_that_never_left_is_no_call() -> None:
    journey = Journey()
    guarding = Guarding(leaf=FakeAdapter(usual=(BadRequest("the model has no such thing"),)))
    assert isinstance(run(guarding.ask(journey)), BadRequest)
    assert journey.steps == []


def test_a_leaf_that_is_busy_itself_is_overloaded() -> None:
    journey = Journey()
    guarding = Guarding(leaf=FakeAdapter(usual=(Busy("too many wait"),)))
    run(guarding.ask(journey))
    assert told(journey) == ["m=overloaded"]


def test_of_two_calls_of_a_request_both_are_told() -> None:
    journey = Journey()
    guarding = Guarding(leaf=FakeAdapter((failure(500),), usual=ANSWER))

    async def script() -> None:
        await guarding.ask(journey)
        await guarding.ask(journey)

    run(script())
    assert told(journey) == ["m=failed", "m=ok"]
    assert journey.calls()[1].finish == Finish("stop")
