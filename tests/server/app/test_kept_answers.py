"""Answers of the Responses door that are kept: named, shown, deleted, and nobody else's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from adapters.errors import Busy
from adapters.protocol import (
    ChatRequest,
    Event,
    Finish,
    Json,
    Opened,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
    Usage,
)
from middleware.wrappers.recall import Limits, MemoryStore, StoreFailure
from tests.server.app.playing import play
from tests.support.adapters import FakeAdapter, Wait
from tests.support.day_one import running
from tests.support.door import Door, Heard, door

PATH = "/v1/responses"
OPENED = Opened((), Upstream("up"))
END = Finish("stop", Usage(1, 2))
TEXT: tuple[Event, ...] = (OPENED, TextDelta("hello"), END)
CALLED: tuple[Event, ...] = (
    *(OPENED, ReasoningDelta("hm"), ToolCallStart(0, "call_1", "look")),
    *(ToolCallDelta(0, "{}"), Finish("tool_calls", Usage(1, 2))),
)
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "seen"}
LOOK = {"type": "function", "name": "look"}


class Client:
    """One key at a gateway whose model says what a test wants."""

    def __init__(self, gateway: Door, model: FakeAdapter, key: str = "one") -> None:
        self.gateway, self.model, self.key = gateway, model, key

    async def ask(self, given: Any = "hi", **fields: Any) -> Heard:
        body = {"model": "m", "input": given, **fields}
        return await self.gateway.ask(body, path=PATH, headers=self._headers)

    async def get(self, path: str, method: str = "GET", *headers: tuple[str, str]) -> Heard:
        return await self.gateway.ask(
            path=f"{PATH}{path}", method=method, headers=[*self._headers, *headers]
        )

    @property
    def _headers(self) -> list[tuple[str, str]]:
        return [("authorization", f"Bearer {self.key}")]

    @property
    def asked(self) -> ChatRequest:
        return self.model.asked[-1]

    def another(self, key: str) -> Client:
        return Client(self.gateway, self.model, key)


def run(
    script: Callable[[Client], Awaitable[None]],
    *answers: tuple[Any, ...],
    store: MemoryStore | None = None,
    keeps: bool = True,
) -> None:
    async def whole() -> None:
        model = FakeAdapter(*answers, usual=TEXT)
        gateway = door(model)
        kept = (store or MemoryStore()) if keeps else None
        gateway.app.use(replace(gateway.app.chat.runtime, answers=kept))
        await script(Client(gateway, model))

    play(whole)


def last(heard: Heard) -> Json:
    """The object of an answer, plain or streamed."""
    if heard.headers["content-type"] == "application/json":
        said: Json = heard.json()
        return said
    said = orjson.loads(heard.frames()[-1].split(b"data: ")[1])["response"]
    return said


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_goes_on_from_another(stream: bool) -> None:
    async def script(client: Client) -> None:
        first = last(await client.ask(stream=stream, tools=[LOOK], instructions="be kind"))
        second = last(await client.ask([OUTPUT], previous_response_id=first["id"], tools=[LOOK]))
        assert second["previous_response_id"] == first["id"]
        user, turn, result = client.asked.messages
        assert user == {"role": "user", "content": "hi"}
        assert turn["tool_calls"][0]["id"] == "call_1"
        assert turn["reasoning_content"] == "hm"
        assert result["content"] == "seen"
        await client.ask("and?", previous_response_id=second["id"])
        roles = [message["role"] for message in client.asked.messages]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]

    run(script, CALLED)


def test_items_are_named_by_their_ids() -> None:
    async def script(client: Client) -> None:
        thought, call = last(await client.ask())["output"]
        named = [{"type": "item_reference", "id": thought["id"]}, {"id": call["id"]}]
        heard = await client.ask([{"role": "user", "content": "hi"}, *named, OUTPUT])
        assert heard.status == 200
        _, turn, _ = client.asked.messages
        assert turn["reasoning_content"] == "hm"
        assert turn["tool_calls"][0]["id"] == "call_1"

    run(script, CALLED)


def test_a_lost_thought_is_let_go_and_a_lost_message_is_a_404() -> None:
    async def script(client: Client) -> None:
        user = {"role": "user", "content": "hi"}
        heard = await client.ask([user, {"type": "item_reference", "id": "rs_" + "0" * 28}])
        assert heard.status == 200
        assert heard.headers["x-usetool-warnings"] == "thoughts_lost"
        heard = await client.ask([user, {"type": "item_reference", "id": "msg_" + "0" * 28}])
        assert (heard.status, heard.error()["param"]) == (404, "input")
        assert "not found" in heard.error()["message"]

    run(script)


def test_what_is_not_kept_cannot_be_named() -> None:
    async def script(client: Client) -> None:
        unkept = last(await client.ask(store=False))
        assert unkept["store"] is False
        kept = last(await client.ask())
        for other, identity in ((client, unkept["id"]), (client.another("two"), kept["id"])):
            assert (await other.get(f"/{identity}")).status == 404
            heard = await other.ask("x", previous_response_id=identity)
            assert (heard.status, heard.error()["code"]) == (400, "previous_response_not_found")
        assert (await client.get(f"/{kept['id']}")).json() == kept

    run(script)


def test_a_failed_answer_is_not_kept() -> None:
    async def script(client: Client) -> None:
        heard = await client.ask(stream=True)
        failed = last(heard)
        assert failed["status"] == "failed"
        assert (await client.get(f"/{failed['id']}")).status == 404

    run(script, (OPENED, TextDelta("a"), Busy("gone")))


def test_answers_are_shown_listed_and_deleted() -> None:
    async def script(client: Client) -> None:
        items = [{"role": "user", "content": str(at)} for at in range(3)]
        identity = last(await client.ask(items))["id"]
        listed = (await client.get(f"/{identity}/input_items?order=asc&limit=2")).json()
        assert [one["content"] for one in listed["data"]] == ["0", "1"]
        assert listed["has_more"] is True
        after = f"/{identity}/input_items?order=asc&after={listed['last_id']}"
        (rest,) = (await client.get(after)).json()["data"]
        assert rest["content"] == "2"
        for wrong in ("limit=0", "limit=101", "limit=00500", "limit=x", "after=msg_none"):
            assert (await client.get(f"/{identity}/input_items?{wrong}")).status == 400, wrong
        assert (await client.get(f"/{identity}?stream=true")).status == 400
        assert (await client.get(f"/{identity}/cancel", "POST")).status == 400
        deleted = (await client.get(f"/{identity}", "DELETE")).json()
        assert deleted == {"id": identity, "object": "response", "deleted": True}
        for path, method in ((f"/{identity}", "GET"), (f"/{identity}", "DELETE")):
            assert (await client.get(path, method)).error()["param"] == "id"
        heard = await client.ask("x", previous_response_id=identity)
        assert heard.error()["code"] == "previous_response_not_found"

    run(script)


def test_what_this_gateway_lacks_is_said_in_words() -> None:
    async def script(client: Client) -> None:
        assert (await client.get("/compact", "POST")).error()["code"] == "unsupported_api"
        socket = ("sec-websocket-key", "x")
        assert (await client.get("", "GET", socket)).status == 426
        assert (await client.get("")).status == 405
        heard = await client.gateway.ask({}, path="/v1/conversations")
        assert (heard.status, heard.error()["code"]) == (404, "unsupported_api")

    run(script)


def test_without_a_store_answers_say_that_they_are_not_kept() -> None:
    async def script(client: Client) -> None:
        said = last(await client.ask())
        assert said["store"] is False
        heard = await client.ask("x", previous_response_id=said["id"])
        assert heard.error()["code"] == "previous_response_not_found"

    run(script, keeps=False)


class BrokenStore(MemoryStore):
    async def keep(self, entries: Any, used: Any) -> None:
        raise StoreFailure("the disk is full")


def test_a_store_that_fails_costs_no_answer() -> None:
    async def script(client: Client) -> None:
        said = last(await client.ask(stream=True))
        assert said["status"] == "completed"
        (note,) = said["x_usetool"]["warnings"]
        assert note["code"] == "recall_not_kept"
        plain = await client.ask()
        assert plain.headers["x-usetool-warnings"] == "recall_not_kept"

    run(script, store=BrokenStore())


class SlowStore(MemoryStore):
    """Tells when something is to be kept, and waits."""

    def __init__(self) -> None:
        super().__init__()
        self.held = Wait()

    async def keep(self, entries: Any, used: Any) -> None:
        self.held.reached.set()
        await self.held.over.wait()
        await super().keep(entries, used)


def test_an_answer_is_kept_before_it_is_over() -> None:
    store = SlowStore()

    async def script(client: Client) -> None:
        body = {"model": "m", "input": "hi", "stream": True}
        heard, task = client.gateway.begin(body, path=PATH)
        await store.held.until_reached()
        assert b"response.completed" not in heard.body
        store.held.over.set()
        await task
        assert b"response.completed" in heard.body

    run(script, store=store)


def test_many_answers_stay_within_their_bounds() -> None:
    store = MemoryStore(Limits(max_bytes=20_000))

    async def script(client: Client) -> None:
        first = last(await client.ask())["id"]
        for _ in range(40):
            newest = last(await client.ask())["id"]
        assert (await client.get(f"/{first}")).status == 404
        assert (await client.get(f"/{newest}")).status == 200

    run(script, store=store)


def test_a_long_answer_is_not_kept_and_says_so() -> None:
    async def script(client: Client) -> None:
        heard = await client.ask()
        assert heard.headers["x-usetool-warnings"] == "recall_not_kept"

    run(script, (OPENED, TextDelta("a" * (5 << 20)), END))


LIVE = """
[cassettes]
mode = "replay"
[upstreams.script]
kind = "scripted"
[models.live]
upstream = "script"
cassettes = "live"
"""


def test_without_recall_a_model_that_cassettes_leave_alone_says_so_too() -> None:
    async def script() -> tuple[int, str]:
        async with running(LIVE) as gateway:
            asked = {"model": "live", "input": "hi"}
            async with gateway.session.post(gateway.url + PATH, json=asked) as heard:
                return heard.status, heard.headers.get("x-usetool-warnings", "")

    status, told = play(script)
    assert (status, "recall_not_kept" in told) == (200, True)
