"""Silent upstreams, clients that leave, and a server that stops."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from adapters.errors import (
    RateLimited,
    Truncated,
)
from tests.server.app.playing import FULL, TINY, error_in, play, seen
from tests.support.adapters import Step, Wait, repeating
from tests.support.door import ANSWER, END, OPENED, TEXT, chat, door

# Heartbeats ------------------------------------------------------------------------------------


def test_a_silent_upstream_is_covered_with_pings_before_the_first_event() -> None:
    async def script() -> None:
        wait = Wait()
        there = door(repeating(wait, (FULL, TEXT, END)), TINY)
        heard, task = there.begin(chat(stream=True))
        await heard.until(4)
        wait.over.set()
        await task
        words = seen(heard.frames())
        assert words[:3] == ["ping"] * 3
        assert [word for word in words if word != "ping"] == ["role", "content", "finish", "done"]
        # Its headers are gone; what they would have said is on the finish chunk.
        assert set(heard.headers) & {"x-upstream-model", "x-usetool-warnings"} == set()
        finish = orjson.loads(heard.frames()[-2][6:])
        assert [note["code"] for note in finish["x_usetool"]["warnings"]] == ["temperature_dropped"]

    play(script)


def test_a_failure_behind_a_ping_is_an_error_frame() -> None:
    async def script() -> None:
        wait = Wait()
        there = door(repeating(wait, RateLimited("slow")), TINY)
        heard, task = there.begin(chat(stream=True))
        await heard.until(2)
        wait.over.set()
        await task
        assert heard.status == 200
        assert seen(heard.frames())[-1] == "error"
        assert set(seen(heard.frames())[:-1]) == {"ping"}
        (line,) = there.lines()
        assert (line["status"], line["error"]["code"]) == (200, "rate_limit_exceeded")

    play(script)


def test_a_silent_upstream_is_covered_with_pings_after_it() -> None:
    async def script() -> None:
        wait = Wait()
        heard, task = door(repeating((OPENED, TEXT), wait, (END,)), TINY).begin(chat(stream=True))
        await heard.until(5)
        wait.over.set()
        await task
        words = seen(heard.frames())
        assert (words[:2], words[-2:]) == (["role", "content"], ["finish", "done"])
        assert set(words[2:-2]) == {"ping"}

    play(script)


def test_a_plain_answer_is_never_pinged() -> None:
    async def script() -> None:
        wait = Wait()
        heard, task = door(repeating(wait, ANSWER), TINY).begin(chat())
        await wait.until_reached()
        await asyncio.sleep(0.1)
        assert heard.sent == []
        wait.over.set()
        await task
        assert heard.status == 200

    play(script)


# Clients that leave, and a server that stops ----------------------------------------------------


MOMENTS: dict[str, tuple[bool, tuple[Step, ...]]] = {
    "plain": (False, ()),
    "plain, in the middle": (False, ((OPENED, TEXT),)),
    "before the first event": (True, ()),
    "in the middle": (True, ((OPENED, TEXT),)),
}


@pytest.mark.parametrize(("stream", "steps"), MOMENTS.values(), ids=MOMENTS)
def test_a_client_that_leaves_cancels_the_upstream(stream: bool, steps: tuple[Step, ...]) -> None:
    async def script() -> None:
        wait, leaves = Wait(), asyncio.Event()
        model = repeating(*steps, wait)
        there = door(model)
        heard, task = there.begin(chat(stream=stream), leaves)
        await wait.until_reached()
        before = list(heard.sent)
        leaves.set()
        await asyncio.wait_for(model.left.wait(), 1)
        await task
        assert heard.sent == before
        (line,) = there.lines()
        assert line["client_gone"] is True
        assert line["status"] == (200 if steps and stream else 499)
        assert "error" not in line

    play(script)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_the_end_of_an_answer_is_not_its_client_leaving(stream: bool, fails: bool) -> None:
    async def script() -> None:
        early, late = Wait(), Wait()
        steps: tuple[Step, ...] = ((OPENED, TEXT), early)
        steps += (Truncated("cut"),) if fails else ((END,), late)
        there = door(repeating(*steps))
        heard, task = there.begin(chat(stream=stream))
        await early.until_reached()
        await asyncio.sleep(0.05)  # until its client is watched
        early.over.set()
        if not fails:
            await late.until_reached()
            await asyncio.sleep(0.01)
            late.over.set()
        await task
        assert heard.complete
        (line,) = there.lines()
        assert "client_gone" not in line
        assert ("error" in line) is fails

    play(script)


def test_a_client_that_left_is_not_pinged() -> None:
    async def script() -> None:
        leaves, wait = asyncio.Event(), Wait()
        heard, task = door(repeating((OPENED, TEXT), wait), TINY).begin(chat(stream=True), leaves)
        await wait.until_reached()
        leaves.set()
        await task
        count = len(heard.sent)
        await asyncio.sleep(0.1)
        assert len(heard.sent) == count

    play(script)


@pytest.mark.parametrize(("stream", "steps"), MOMENTS.values(), ids=MOMENTS)
def test_a_server_that_stops_says_so(stream: bool, steps: tuple[Step, ...]) -> None:
    async def script() -> None:
        wait = Wait()
        model = repeating(*steps, wait)
        heard, task = door(model).begin(chat(stream=stream))
        await wait.until_reached()
        task.cancel()
        await task
        assert model.left.is_set()
        assert heard.complete
        if stream and steps:
            assert seen(heard.frames()) == ["role", "content", "error"]
            error = error_in(heard.frames()[-1])
        else:
            assert heard.status == 503
            assert heard.headers["retry-after"] == "5"
            assert "x-should-retry" not in heard.headers
            error = heard.error()
        assert "shutting down. Send the request again." in error["message"]

    play(script)
