"""How long a conversation waits for an upstream; on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from adapters.claude.decode import State, close, decode, decode_answer
from adapters.errors import Truncated, Unavailable
from adapters.protocol import RequestContext, TextDelta
from adapters.wire.clock import Clock
from adapters.wire.exchange import Exchange, converse
from adapters.wire.framing import Sse
from adapters.wire.http import Timeouts
from tests.adapters.wire.talking import PING, never, pings_after, says
from tests.support.fold import Answer, fold, run
from tests.support.language import SAY, STOP, USAGE, exchange, sse
from tests.support.upstreams.claude_wire import begin, end, thought
from tests.support.upstreams.claude_wire import sse as claude_sse
from tests.support.upstreams.claude_wire import text as claude_text
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

NO_LIMITS: Mapping[str, float] = {}


async def pinging(peer: Peer) -> None:
    await pings_after(sse())(peer)


def talk(
    behave: Behaviour,
    timeouts: Mapping[str, float] = NO_LIMITS,
    *,
    streamed: bool = True,
    within: float | None = None,
    said: Exchange[Any] | None = None,
) -> tuple[Answer, float]:
    """One conversation and how long it took; the upstream must have been left at its end."""

    async def whole() -> tuple[Answer, float]:
        async with loopback(behave, **timeouts) as up:
            loop = asyncio.get_running_loop()
            started = loop.time()
            deadline = None if within is None else started + within
            call = RequestContext(streamed=streamed, deadline=deadline)
            talking = said or exchange(streamed=streamed)
            async with asyncio.timeout(5):  # who has no patience left does not wait for ever
                answer = await fold(converse(up.link, talking, call))
            took = loop.time() - started
            if (
                said is None
                and answer.error is not None
                and not isinstance(answer.error, Truncated)
            ):
                await asyncio.wait_for(up.gone.wait(), 0.25)
            return answer, took

    return run(whole())


@pytest.mark.parametrize(
    ("behave", "timeouts", "text"),
    [
        (never, {"first_event": 0.2}, ""),
        (says(ends=False), {"first_event": 0.2}, ""),
        (pinging, {"first_event": 0.1, "content": 0.2}, ""),
        (says(sse({"model": "m"}, {"note": "n"}), ends=False), {"first_event": 0.2}, ""),
        (says(sse(SAY), ends=False), {"idle": 0.2}, "a"),
        (pings_after(sse(SAY)), {"content": 0.2}, "a"),
        (pings_after(sse(SAY)), {"total": 0.2}, "a"),
        (never, {"total": 0.2}, ""),
    ],
)
def test_silence_has_an_end(behave: Behaviour, timeouts: dict[str, float], text: str) -> None:
    answer, took = talk(behave, timeouts)
    assert isinstance(answer.error, Unavailable)
    assert (answer.error.code, answer.error.status) == ("upstream_timeout", 504)
    assert (answer.text, answer.reason) == (text, "")
    assert 0.15 < took < 1


@pytest.mark.parametrize("behave", [never, says(ends=False), says(b"{", ends=False), pinging])
@pytest.mark.parametrize("within", [None, 0.2], ids=["plain", "deadline"])
def test_a_plain_answer_has_one_budget(behave: Behaviour, within: float | None) -> None:
    plain = 0.2 if within is None else 9
    timeouts = {"plain": plain, "idle": 0.01}
    answer, took = talk(behave, timeouts, streamed=False, within=within)
    assert answer.error is not None
    assert answer.error.code == "upstream_timeout"
    assert 0.15 < took < 1


def test_whoever_goes_on_speaking_behind_a_reason_has_its_time_again() -> None:
    async def dues() -> list[float]:
        clock = Clock(Timeouts(), None)
        found = [clock.due((), busy=False, ending=True)]
        await asyncio.sleep(0.02)
        found.append(clock.due((), busy=False, ending=True))
        return [*found, clock.due((TextDelta("a"),), busy=False, ending=True)]

    first, same, later = run(dues())
    assert first == same < later


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("times", [{"idle": 900, "idle_open": 900, "content": 5}, {"total": 5}])
def test_no_silence_is_longer_than_that_of_content_or_than_all(
    times: dict[str, float], busy: bool
) -> None:
    async def left() -> list[float]:
        clock, now = Clock(Timeouts(**times), None), asyncio.get_running_loop().time()
        return [clock.due(said, busy) - now for said in ((TextDelta("a"),), ())]

    assert all(4 < seconds < 6 for seconds in run(left()))


def test_the_deadline_of_a_request_ends_a_stream() -> None:
    answer, took = talk(pings_after(sse(SAY)), within=0.2)
    assert answer.error is not None
    assert (answer.error.code, answer.text) == ("upstream_timeout", "a")
    assert took < 1


def test_pings_do_not_count_as_silence_of_bytes() -> None:
    answer, _ = talk(says(sse(SAY), PING, PING, PING, sse(STOP, USAGE), every=0.1), {"idle": 0.2})
    assert (answer.reason, answer.error) == ("stop", None)


def test_an_upstream_that_said_why_it_stopped_is_not_waited_for() -> None:
    answer, took = talk(says(sse(SAY, STOP), ends=False), within=0.3)
    assert (answer.text, answer.reason, answer.usage, answer.error) == ("a", "stop", None, None)
    assert took < 1


def test_it_is_not_waited_for_even_if_it_pings_for_ever() -> None:
    answer, took = talk(pings_after(sse(SAY, STOP)))
    assert (answer.text, answer.reason, answer.error) == ("a", "stop", None)
    assert 1.5 < took < 3


def test_an_end_that_is_held_open_does_not_hold_us() -> None:
    answer, took = talk(says(sse(SAY, STOP, USAGE), ends=False))
    assert answer.reason == "stop"
    assert took < 0.5


def test_a_slow_client_is_no_silence_of_the_upstream() -> None:
    async def whole() -> str:
        upstream = says(sse(SAY), sse(SAY), sse(STOP, USAGE), every=0.5)
        async with loopback(upstream, idle=0.3, content=0.3) as up:
            text = ""
            async for batch in converse(up.link, exchange(), RequestContext(streamed=True)):
                text += "".join(event.text for event in batch if isinstance(event, TextDelta))
                await asyncio.sleep(0.4)
            return text

    assert run(whole()) == "aa"


def test_whoever_pings_is_alive_before_its_first_word() -> None:
    slow = says(*[PING] * 5, sse(SAY, STOP, USAGE), every=0.1)
    answer, _ = talk(slow, {"first_event": 0.2, "content": 5})
    assert (answer.text, answer.error) == ("a", None)


def test_pings_alone_are_waited_for_in_proportion_to_the_first_event() -> None:
    answer, took = talk(pinging, {"first_event": 0.1, "content": 60})
    assert answer.error is not None
    assert 0.4 < took < 2


def thinks(*pings: bytes, every: float = 0.1) -> Behaviour:
    """Claude's thought of which nothing is shown, then a word."""
    before = claude_sse(begin(), *[*thought(0)][:1])
    behind = claude_sse(*[*thought(0)][1:], *claude_text(1, "a"), *end())
    return says(before, *pings, behind, every=every)


CLAUDE_PING = claude_sse({"type": "ping"})


@pytest.mark.parametrize(
    ("behave", "timeouts", "alive"),
    [
        (thinks(*[CLAUDE_PING] * 4), {"first_event": 0.2, "content": 5}, True),
        (thinks(*[CLAUDE_PING] * 4), {"first_event": 0.2, "content": 0.3}, False),
        # Some stretches have no pings: the block that is open stands for them.
        (thinks(every=0.5), {"first_event": 0.2, "idle_open": 5, "content": 5}, True),
        (thinks(every=0.5), {"first_event": 0.1, "idle_open": 0.2, "content": 5}, False),
    ],
)
def test_a_thought_that_is_not_shown_is_life_and_content_is_its_limit(
    behave: Behaviour, timeouts: dict[str, float], alive: bool
) -> None:
    said = Exchange("/", {}, (), State(), True, Sse, decode, close, decode_answer)
    answer, _ = talk(behave, timeouts, said=said)
    assert (answer.text, answer.error is None) == (("a", True) if alive else ("", False))


def test_a_thought_behind_text_is_life_too() -> None:
    opened = claude_sse(begin(), *claude_text(0, "a"), *[*thought(1)][:1])
    behave = says(opened, claude_sse(*[*thought(1)][1:], *end()), every=0.4)
    said = Exchange("/", {}, (), State(), True, Sse, decode, close, decode_answer)
    answer, _ = talk(behave, {"idle": 0.1, "idle_open": 5}, said=said)
    assert (answer.text, answer.error) == ("a", None)


def test_a_thought_may_be_silent_for_longer() -> None:
    upstream = says(sse({"think": "hm"}), sse(SAY, STOP, USAGE), every=0.4)
    answer, _ = talk(upstream, {"idle": 0.1, "idle_open": 5})
    assert (answer.reasoning, answer.text, answer.error) == ("hm", "a", None)
    answer, _ = talk(says(sse({"think": "hm"}), ends=False), {"idle": 5, "idle_open": 0.1})
    assert answer.error is not None


def test_a_cut_stream_says_what_came_and_that_it_is_cut() -> None:
    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.start()
        await peer.chunk(sse(SAY, SAY))

    answer, _ = talk(cut)
    assert isinstance(answer.error, Truncated)
    assert (answer.text, answer.reason) == ("aa", "")


def test_a_body_that_breaks_behind_the_reason_is_complete() -> None:
    async def broken(peer: Peer) -> None:
        await peer.request()
        await peer.start()
        await peer.chunk(sse(SAY, STOP))
        await asyncio.sleep(0.02)
        peer.reset()

    answer, _ = talk(broken)
    assert (answer.reason, answer.error) == ("stop", None)
