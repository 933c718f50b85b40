"""The ring of keys: whose turn it is, how long each rests, what a 429 teaches."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.outcomes import Outcome
from adapters.protocol import RequestContext
from middleware.machine.memory import MemoryBoard
from middleware.state.memory import MemoryState
from middleware.wrappers.key_ring import KeyRing
from tests.wrappers.guards.guarded import THREE, Guarding, failure, run, share

CALL = RequestContext()


def ring(*names: str) -> KeyRing:
    return KeyRing("up", MemoryBoard(), MemoryState(), dict.fromkeys(names, "key"))


def turn_order(names: list[str], conversation: str) -> list[str]:
    return [turn.name for turn in run(ring(*names).turns("m", conversation))]


Names = st.lists(st.text("abcdef", min_size=1), min_size=2, max_size=6, unique=True)


@settings(max_examples=50, deadline=None)
@given(Names, st.text(max_size=20))
def test_an_order_is_of_the_conversation_alone(names: list[str], conversation: str) -> None:
    order = turn_order(names, conversation)
    assert sorted(order) == sorted(names)
    assert turn_order(names[::-1], conversation) == order
    gone = order[0]
    if len(names) > 2:
        assert turn_order([name for name in names if name != gone], conversation) == order[1:]


def test_conversations_are_spread_evenly() -> None:
    keys = ring("up#1", "up#2", "up#3")
    firsts = Counter(run(keys.turns("m", f"c{number}"))[0].name for number in range(600))
    assert len(firsts) == 3
    assert share([*firsts.values()]) > 0.75


def test_a_key_with_more_than_its_share_is_left_to_the_end() -> None:
    guarding = Guarding(THREE)

    async def script() -> None:
        first, second, _ = await guarding.order()
        for _ in range(3):
            await guarding.ring.begin(first, CALL)
        assert (await guarding.order())[0] == first  # 3 of 1.25 × 3 / 3 + 2
        held = [await guarding.ring.begin(first, CALL) for _ in range(2)]
        assert (await guarding.order())[0] == second
        assert (await guarding.order())[-1] == first
        assert await guarding.ring.open_calls() == 5
        for name in held:
            await guarding.ring.end(first, name)
        assert (await guarding.order())[0] == first

    run(script())


def test_turns_say_well_then_full_then_resting_the_first_end_first() -> None:
    guarding = Guarding('api_key = ["a", "b", "c", "d"]\nmax_concurrent = 1')

    async def script() -> None:
        one, two, three, four = await guarding.order()
        await guarding.rest(one, seconds="20")
        await guarding.rest(two, seconds="10")
        assert await guarding.ring.board.take(three, 1, 0)
        turns = await guarding.ring.turns(guarding.name, "c")
        assert [turn.name for turn in turns] == [four, three, two, one]
        assert [turn.resting for turn in turns] == [0, 0, 10, 20]
        assert [turn.full for turn in turns] == [False, True, False, False]
        other = await guarding.ring.turns("another model", "c")
        assert not any(turn.resting for turn in other)

    run(script())


def test_a_limited_key_is_back_at_the_end_of_its_rest() -> None:
    guarding = Guarding(THREE)

    async def script() -> None:
        first, *_ = await guarding.order()
        await guarding.rest(first, seconds="2")
        assert guarding.ring.resting() == 1
        guarding.now += 1.9
        assert (await guarding.order())[-1] == first
        guarding.now += 0.2
        assert (await guarding.order())[0] == first
        assert guarding.ring.resting() == 0

    run(script())


IN_A_MINUTE = format_datetime(datetime.fromtimestamp(1_000_000, UTC) + timedelta(minutes=1))


@pytest.mark.parametrize(
    ("outcome", "retry_after", "rest"),
    [
        ("rate_limited", "30", 30),
        ("rate_limited", "0.5", 0.5),
        ("rate_limited", IN_A_MINUTE, 60),
        ("rate_limited", "1e12", 86400),
        ("rate_limited", None, 5),
        ("rate_limited", "0", 5),
        ("rate_limited", "-5", 5),
        ("rate_limited", "soon", 5),
        ("rate_limited", "nan", 5),
        ("refused", None, 300),
        ("quota", "7", 300),
        ("failed", "7", 0),
        ("overloaded", "7", 0),
        ("client", None, 0),
    ],
)
@pytest.mark.parametrize("upstream", ["", THREE])
def test_a_rest_is_as_long_as_what_it_is_for(
    outcome: Outcome, retry_after: str | None, rest: float, upstream: str
) -> None:
    guarding = Guarding(upstream)
    name, error = guarding.ring.names[0], failure(429)
    error.retry_after = retry_after

    async def script() -> None:
        await guarding.ring.failed(name, guarding.name, outcome, error)
        turns = await guarding.ring.turns(guarding.name, "c")
        assert next(turn.resting for turn in turns if turn.name == name) == pytest.approx(rest)

    run(script())


def test_a_rest_that_nobody_told_the_end_of_doubles_up_to_a_minute() -> None:
    guarding, rests = Guarding(), []
    limited = failure(429)

    async def script() -> None:
        for _ in range(6):
            await guarding.ring.failed("up", guarding.name, "rate_limited", limited)
            # What was asked beside it says the same again.
            await guarding.ring.failed("up", guarding.name, "rate_limited", limited)
            rests.append((await guarding.ring.turns(guarding.name, ""))[0].resting)
            guarding.now += rests[-1] + 1
        guarding.now += 60
        await guarding.ring.failed("up", guarding.name, "rate_limited", limited)
        rests.append((await guarding.ring.turns(guarding.name, ""))[0].resting)

    run(script())
    assert rests == [5, 10, 20, 40, 60, 60, 5]


def test_of_two_rests_the_later_end_holds() -> None:
    guarding = Guarding()

    async def script() -> None:
        await guarding.rest("up", seconds="20")
        guarding.now += 1
        await guarding.rest("up", seconds="1")
        assert (await guarding.ring.turns(guarding.name, ""))[0].resting == 19

    run(script())


def test_a_429_teaches_how_many_calls_a_key_takes_and_time_forgets_it() -> None:
    guarding = Guarding(THREE)
    ring, model = guarding.ring, guarding.name

    async def script() -> None:
        for _ in range(3):
            await ring.begin("up#1", CALL)
            assert await ring.board.take("up#1", 3, 0)
        limits = []
        for _ in range(3):
            await guarding.rest("up#1", seconds="1")
            limits.append(await ring.limit_of("up#1", model))
            for later in (9, 2, 10):
                guarding.now += later
                limits.append(await ring.limit_of("up#1", model))
        assert limits == [3, 3, 4, 5, 3, 3, 3, 4, 3, 3, 3, 3]
        assert await ring.limit_of("up#2", model) > 1000
        assert await ring.limit_of("up#1", "another model") > 1000

    run(script())


def test_two_calls_at_once_are_always_left_to_a_key() -> None:
    guarding = Guarding(THREE)

    async def script() -> None:
        await guarding.rest("up#1")
        assert await guarding.ring.limit_of("up#1", guarding.name) == 2

    run(script())


def test_what_another_gateway_has_open_is_not_ours() -> None:
    guarding = Guarding(THREE)
    ring, model = guarding.ring, guarding.name

    async def script() -> None:
        for _ in range(4):
            await ring.begin("up#1", CALL)  # counted, but no slot of this machine is taken
        await guarding.rest("up#1", seconds="1")
        guarding.now += 2
        assert await ring.limit_of("up#1", model) == 1
        full = {turn.name: turn.full for turn in await ring.turns(model, "c")}
        assert full == {"up#1": False, "up#2": False, "up#3": False}
        assert await ring.board.take("up#1", 1, 0)
        assert (await ring.turns(model, "c"))[-1] == ("up#1", 0, True, 4)

    run(script())


def test_an_unset_key_among_several_is_left_out_and_places_keep_their_numbers() -> None:
    guarding = Guarding('api_key = ["env:KEY_A", "env:NOT_SET", "env:KEY_C"]')
    assert guarding.ring.names == ("up#1", "up#3")
    assert Guarding('api_key = "env:KEY_A"').ring.names == ("up",)
    assert Guarding().ring.names == ("up",)
    assert "secret-A" not in repr(guarding.ring)


def test_another_key_in_the_place_of_one_that_rests_begins_anew() -> None:
    async def script() -> None:
        before = Guarding('api_key = ["a", "b"]')
        await before.rest("up#1")
        after = Guarding('api_key = ["c", "b"]')
        after.ring.state = before.ring.state
        turns = await after.ring.turns(after.name, "c")
        assert not any(turn.resting for turn in turns)
        same = Guarding('api_key = ["a", "b"]')
        same.ring.state = before.ring.state
        assert (await same.ring.turns(same.name, "c"))[-1].name == "up#1"

    run(script())
