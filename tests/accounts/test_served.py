"""What clients see of who they are, and of their limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from adapters.protocol import Finish, Opened, TextDelta, Upstream, Usage
from middleware.routing import Routes
from middleware.server.visits import Visit
from middleware.state.memory import MemoryState
from middleware.wrappers.route import Route
from tests.accounts.counting import KEY, counting
from tests.support.adapters import FakeAdapter, Step, Wait
from tests.support.door import Door, Heard, chat

MINE = (KEY,)
UPSTREAMS_LIMITS = {
    "x-ratelimit-remaining-requests": "999",
    "x-ratelimit-remaining-tokens": "9999",
    "x-other": "kept",
}
OPENED = Opened((), Upstream("up", headers=UPSTREAMS_LIMITS))
END = Finish("stop", Usage(10, 5))


def play(script: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await script()

    asyncio.run(run())


async def ask(door: Door, model: str = "demo", **fields: object) -> Heard:
    return await door.ask(chat(model, **fields), headers=MINE)


def of(door: Door, adapter: FakeAdapter) -> Door:
    """The same, whose model `demo` says what a test wants."""
    routes = Routes({"demo": Route(adapter, "demo")}, ())
    door.app.use(replace(door.app.chat.runtime, routes=routes))
    return door


# Who may ask what ------------------------------------------------------------------------------


def test_a_model_that_is_another_clients_does_not_exist() -> None:
    async def script() -> None:
        door = counting('models = ["demo", "many/one*"]')
        refused, unknown = await ask(door, "other"), await ask(door, "nobodys")
        for heard, name in ((refused, "other"), (unknown, "nobodys")):
            error = heard.error()
            assert (heard.status, error["code"]) == (404, "model_not_found")
            told = error["message"].replace(name, "X").partition(" (request")[0]
            assert told.startswith("The model 'X' does not exist here. There are: demo.")
        assert (await ask(door, "many/one-more")).status == 200
        assert (await ask(door, "many/two")).status == 404

    play(script)


def test_the_list_and_the_model_say_the_same() -> None:
    async def script() -> None:
        door = counting('models = ["demo"]')
        listed = await door.ask(method="GET", path="/v1/models", headers=MINE)
        assert [one["id"] for one in listed.json()["data"]] == ["demo"]
        for name, status in (("demo", 200), ("other", 404)):
            heard = await door.ask(method="GET", path=f"/v1/models/{name}", headers=MINE)
            assert heard.status == status
        others = await door.ask(method="GET", path="/v1/models", headers=[("x-api-key", "B")])
        assert {"demo", "other"} <= {one["id"] for one in others.json()["data"]}

    play(script)


@pytest.mark.parametrize(
    ("cassettes", "name", "status"),
    [
        ("[]", "mine/one", 403),
        ('["mine/*"]', "mine/one", 422),  # it may, but there is none
        ('["mine/*"]', "theirs/one", 403),
        ('["mine/*"]\nadmin = true', "theirs/one", 422),
    ],
)
def test_a_client_may_name_its_own_cassettes_only(
    cassettes: str, name: str, status: int, tmp_path: Path
) -> None:
    async def script() -> None:
        more = f'[cassettes]\nmode = "replay"\nfolder = "{tmp_path}"\n'
        door = counting(f"cassettes = {cassettes}", more)
        heard = await door.ask(chat("demo"), headers=[KEY, ("x-usetool-cassette", name)])
        assert heard.status == status
        if status == 403:
            assert heard.error()["code"] == "cassette_not_allowed"

    play(script)


# Limits ----------------------------------------------------------------------------------------


def test_a_limit_refuses_before_the_body_is_checked() -> None:
    async def script() -> None:
        door = counting("requests_per_minute = 1")
        assert (await ask(door)).headers["x-ratelimit-remaining-requests"] == "0"
        heard = await door.ask(b"nonsense", headers=MINE)
        error = heard.error()
        assert (heard.status, error["type"]) == (429, "requests")
        assert 1 <= int(heard.headers["retry-after"]) <= 60
        assert heard.headers["x-ratelimit-limit-requests"] == "1"
        assert "x-should-retry" not in heard.headers
        other = await door.ask(chat("demo"), headers=[("x-api-key", "B")])
        assert other.status == 200
        assert not any(name.startswith("x-ratelimit") for name in other.headers)
        assert [line.get("limit") for line in door.lines()] == [None, "requests", None]

    play(script)


def test_a_spent_budget_is_no_matter_of_waiting_a_little() -> None:
    async def script() -> None:
        door = counting('budget = "0.00002 USD/month"')
        statuses = [(await ask(door, stream=number % 2 == 1)).status for number in range(6)]
        assert statuses == sorted(statuses)
        heard = await ask(door)
        error = heard.error()
        assert (error["type"], error["code"]) == ("insufficient_quota", "insufficient_quota")
        assert heard.headers["x-should-retry"] == "false"

    play(script)


def test_what_another_limit_refused_is_no_request() -> None:
    async def script() -> None:
        door = counting("requests_per_minute = 2\ntokens_per_minute = 1")
        assert (await ask(door)).status == 200
        assert [(await ask(door)).error()["type"] for _ in range(3)] == ["tokens"] * 3

    play(script)


def test_what_one_client_was_refused_no_other_sees() -> None:
    async def script() -> None:
        door = counting("requests_per_minute = 1")
        assert [(await ask(door)).status for _ in range(2)] == [200, 429]
        seen = []
        for key in (KEY, ("authorization", "Bearer B")):
            heard = await door.ask(method="GET", path="/v1/x_usetool/last", headers=[key])
            seen.append([one["status"] for one in heard.json()["data"]])
        assert seen == [[429, 200], []]

    play(script)


def test_an_answer_without_end_hides_none_of_the_others() -> None:
    async def script() -> None:
        door = counting("tokens_per_minute = 200")
        found = [(await ask(door, max_tokens=(1 << 63) - 1)).status for _ in range(20)]
        assert found[0] == 200
        assert found[-1] == 429

    play(script)


def test_a_model_that_is_live_among_recordings_is_limited_and_counted(tmp_path: Path) -> None:
    async def script() -> None:
        more = f'[cassettes]\nmode = "replay"\nfolder = "{tmp_path}"\n'
        live = '[models.open]\nupstream = "script"\ncassettes = "live"\n'
        door = counting("requests_per_minute = 1", more + live)
        assert [(await ask(door, "open")).status for _ in range(2)] == [200, 429]
        assert [line.get("limit") for line in door.lines()] == [None, "requests"]

    play(script)


class Broken:
    def ended(self, visit: Visit, now: float) -> None:
        raise RuntimeError("ours")


def test_what_cannot_be_told_keeps_nobody_out() -> None:
    async def script() -> None:
        door = counting("concurrent = 1")
        chat_door = door.app.chat
        chat_door.observers += (Broken(),)
        with pytest.raises(RuntimeError):
            await ask(door)
        assert await chat_door.accounts.state.sums(["concurrent:alpha"]) == [0]

    play(script)


@pytest.mark.parametrize("stream", [False, True])
def test_places_are_free_again_after_whatever_became_of_a_request(stream: bool) -> None:
    async def script() -> None:
        wait, left = Wait(), asyncio.Event()
        said: tuple[Step, ...] = ((OPENED, TextDelta("a")), wait)
        adapter = FakeAdapter(said, [RuntimeError("ours")], usual=[(OPENED, END)])
        door = of(counting("concurrent = 1"), adapter)
        body = chat("demo", stream=stream)
        _, task = door.begin(body, leaves=left, headers=MINE)
        await wait.until_reached()
        assert (await door.ask(body, headers=MINE)).error()["type"] == "rate_limit_error"
        left.set()
        await task
        assert (await door.ask(body, headers=MINE)).status == 500
        assert (await door.ask(body, headers=MINE)).status == 200

    play(script)


def test_who_has_limits_is_told_of_them_and_not_of_the_upstreams() -> None:
    async def script() -> None:
        adapter = FakeAdapter(usual=[(OPENED, END)])
        heard = await ask(of(counting("requests_per_minute = 5"), adapter))
        assert heard.headers["x-ratelimit-remaining-requests"] == "4"
        assert "x-ratelimit-remaining-tokens" not in heard.headers
        assert heard.headers["x-other"] == "kept"
        free = await ask(of(counting(), adapter))
        assert free.headers["x-ratelimit-remaining-requests"] == "999"

    play(script)


# Cost ------------------------------------------------------------------------------------------


def test_the_cost_stands_in_a_header_or_in_the_last_chunk() -> None:
    async def script() -> None:
        door = counting()
        plain = await ask(door)
        usage = plain.json()["usage"]
        cost = (usage["prompt_tokens"] + 3 * usage["completion_tokens"]) / 1e6
        assert float(plain.headers["x-usetool-cost"]) == cost
        stream = await ask(door, stream=True)
        assert "x-usetool-cost" not in stream.headers
        chunks = [orjson.loads(frame[6:]) for frame in stream.frames()[:-1]]
        assert [one.get("x_usetool") for one in chunks if "x_usetool" in one] == [{"cost": cost}]
        assert [line["cost"] for line in door.lines()] == [cost, cost]

    play(script)


def test_without_limits_nothing_is_taken() -> None:
    async def script() -> None:
        door = counting()
        await ask(door)
        state = door.app.chat.accounts.state
        assert isinstance(state, MemoryState)
        assert not state.counters.kept

    play(script)
