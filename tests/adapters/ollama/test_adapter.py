"""The leaf as a whole: what it asks before a chat, what it remembers, where it sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from adapters.errors import BadRequest, Refused, UpstreamError
from adapters.ollama import KIND, Ollama, connect
from adapters.protocol import ChatRequest, Json, RequestContext
from adapters.wire.http import Link, Transport
from tests.support.fold import Answer, fold, run
from tests.support.upstreams.loopback import Peer, loopback

ABLE: Json = {
    "capabilities": ["completion", "tools", "thinking"],
    "details": {"family": "qwen3"},
    "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 32768},
}
TOOL: Json = {"type": "function", "function": {"name": "weather", "parameters": {}}}
DONE: Json = {
    "model": "qwen3",
    "message": {"role": "assistant", "content": "hi"},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 1,
    "eval_count": 1,
}


def request(text: str = "hi", streamed: bool = True, **more: Any) -> ChatRequest:
    said = ChatRequest(
        "qwen3", ({"role": "user", "content": text},), call=RequestContext(streamed=streamed)
    )
    return replace(said, **more)


@dataclass
class Server:
    """An Ollama server of a few lines; what it was asked stays here."""

    show: Json | None = field(default_factory=lambda: ABLE)
    """None: it knows nothing of the model."""
    refusal: str = ""
    answer: Json = field(default_factory=lambda: DONE)
    asked: list[tuple[str, Json]] = field(default_factory=list)

    async def __call__(self, peer: Peer) -> None:
        while True:
            head, body = await peer.request()
            path = head.split()[1]
            self.asked.append((path, json.loads(body)))
            if path == "/api/show":
                await asyncio.sleep(0.01)
                await self._reply(peer, self.show, "404 Not Found")
            else:
                await self._reply(peer, None if self.refusal else self.answer, "400 Bad Request")

    async def _reply(self, peer: Peer, body: Json | None, failure: str) -> None:
        if body is None:
            words = {"error": self.refusal or "model not found"}
            await peer.answer(json.dumps(words).encode(), status=failure)
        else:
            await peer.answer(json.dumps(body).encode() + b"\n")

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def chats(self) -> list[Json]:
        return [body for path, body in self.asked if path == "/api/chat"]


@asynccontextmanager
async def serving(
    server: Callable[[Peer], Any], options: Mapping[str, Any] | None = None, **abilities: Any
) -> AsyncIterator[Ollama]:
    async with loopback(server) as upstream:
        yield connect(KIND.settings(upstream.link, abilities=abilities, options=options or {}))


async def ask(leaf: Ollama, *requests: ChatRequest) -> list[Answer]:
    return [await fold(leaf.stream(one)) for one in requests]


# Where -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/api", "/api/chat", "/sub/api/"])
def test_any_address_of_the_server_is_understood(ending: str) -> None:
    leaf = connect(KIND.settings(Link("o", f"http://ollama:11434{ending}", Transport())))
    where = "/sub" if "sub" in ending else ""
    assert leaf.plan(request())[0].url == f"http://ollama:11434{where}/api/chat"


@pytest.mark.parametrize("least", ["8k", 0, True, None])
def test_a_window_that_is_no_number_is_a_mistake_of_the_config(least: Any) -> None:
    with pytest.raises(ValueError, match="min_num_ctx"):
        connect(KIND.settings(Link("o", "http://o", Transport()), options={"min_num_ctx": least}))


# What it asks ----------------------------------------------------------------------------------


def test_a_model_is_asked_about_once_however_many_ask_for_it() -> None:
    async def work() -> list[str]:
        server = Server()
        async with serving(server) as leaf:
            await asyncio.gather(*(fold(leaf.stream(request())) for _ in range(5)))
            await ask(leaf, request())
            return server.paths()

    paths = run(work())
    assert paths.count("/api/show") == 1
    assert paths.count("/api/chat") == 6


@pytest.mark.parametrize(("fresh", "asks"), [(300.0, 1), (0.0, 2)])
def test_an_answer_serves_for_a_while(fresh: float, asks: int) -> None:
    async def work() -> list[str]:
        server = Server()
        async with serving(server) as leaf:
            leaf.asked.fresh = fresh
            await ask(leaf, request(), request())
            return server.paths()

    assert run(work()).count("/api/show") == asks


def test_a_client_that_leaves_does_not_take_the_answer_from_the_others() -> None:
    async def work() -> Answer:
        async with serving(Server()) as leaf:
            first = asyncio.create_task(fold(leaf.stream(request())))
            second = asyncio.create_task(fold(leaf.stream(request())))
            await asyncio.sleep(0.005)
            first.cancel()
            return await second

    assert run(work()).text == "hi"


def test_a_server_that_says_nothing_of_a_model_is_still_asked_to_chat() -> None:
    async def work() -> tuple[list[str], list[Answer]]:
        server = Server(show=None)
        async with serving(server) as leaf:
            answers = await ask(leaf, request(), request(tools=(TOOL,)))
            assert leaf.windows == {}
            return server.paths(), answers

    paths, answers = run(work())
    assert [answer.text for answer in answers] == ["hi", "hi"]
    assert paths == ["/api/show", "/api/chat"] * 2


def test_a_server_that_is_away_is_an_error_of_the_chat_in_its_own_words() -> None:
    async def work() -> Answer:
        leaf = connect(KIND.settings(Link("o", "http://127.0.0.1:9", Transport())))
        answer = await fold(leaf.stream(request()))
        await leaf.link.transport.close()
        return answer

    error = run(work()).error
    assert isinstance(error, UpstreamError)
    assert error.code == "upstream_unreachable"
    assert "`ollama serve`" in error.message


def test_a_model_that_cannot_call_is_refused_before_it_is_asked() -> None:
    async def work() -> tuple[list[str], list[Answer]]:
        server = Server(show={"capabilities": ["completion"]})
        async with serving(server) as leaf:
            answers = await ask(leaf, request(tools=(TOOL,)), request())
            return server.paths(), answers

    paths, (refused, answered) = run(work())
    assert isinstance(refused.error, BadRequest)
    assert answered.text == "hi"
    assert paths == ["/api/show", "/api/chat"]


def test_the_config_outranks_what_the_server_says() -> None:
    async def work() -> list[Json]:
        server = Server(show={"capabilities": []})
        async with serving(server, tools=True, context_length=8192) as leaf:
            await ask(leaf, request(tools=(TOOL,)))
            return server.chats()

    (body,) = run(work())
    assert body["tools"]


@pytest.mark.parametrize(
    ("words", "asks"), [("qwen3 does not support tools", 2), ("invalid option", 1)]
)
def test_a_refusal_about_abilities_makes_it_ask_again(words: str, asks: int) -> None:
    async def work() -> tuple[list[str], list[Answer]]:
        server = Server(refusal=words)
        async with serving(server) as leaf:
            answers = await ask(leaf, request(tools=(TOOL,)), request(tools=(TOOL,)))
            return server.paths(), answers

    paths, answers = run(work())
    assert all(isinstance(answer.error, Refused) for answer in answers)
    assert paths.count("/api/show") == asks


# What it remembers -----------------------------------------------------------------------------


def windows(*requests: ChatRequest, options: Mapping[str, Any] | None = None) -> list[int]:
    async def work() -> list[int]:
        server = Server()
        async with serving(server, options) as leaf:
            for one in requests:
                planned = leaf.plan(one)[0].body
                await fold(leaf.stream(one))
                if leaf.windows:
                    assert planned["options"]["num_ctx"] == server.chats()[-1]["options"]["num_ctx"]
            return [body["options"]["num_ctx"] for body in server.chats()]

    return run(work())


LONG = "x" * 40_000


def test_a_window_grows_with_the_conversation_and_never_shrinks() -> None:
    assert windows(request(), request(LONG), request(), request()) == [8192, 32768, 32768, 32768]


def test_a_conversation_that_outgrew_its_window_gets_the_models_own() -> None:
    turns = [request("x" * (4_000 * turn)) for turn in range(1, 13)]
    assert sorted(set(windows(*turns))) == [8192, 32768]


def test_a_window_is_never_larger_than_the_model() -> None:
    assert windows(request(), request("x" * 400_000)) == [8192, 32768]


def test_a_prompt_larger_than_the_model_is_told() -> None:
    async def work() -> list[Answer]:
        async with serving(Server()) as leaf:
            return await ask(leaf, request("x" * 400_000), request("x" * 40_000))

    assert [answer.notes for answer in run(work())] == [["context_may_be_truncated"], []]


@pytest.mark.parametrize(
    ("options", "extra", "expected"),
    [
        ({"num_ctx": 4096}, {}, [4096, 4096]),
        ({}, {"num_ctx": 2048}, [2048, 2048]),
        ({}, {"options": {"num_ctx": 2048}}, [2048, 2048]),
        ({"num_ctx": 4096}, {"num_ctx": 2048}, [2048, 2048]),
        ({"min_num_ctx": 1024}, {}, [4096, 32768]),
    ],
)
def test_a_window_somebody_chose_is_left_alone(
    options: Json, extra: Json, expected: list[int]
) -> None:
    requests = (request(extra=extra), request(LONG, extra=extra))
    assert windows(*requests, options=options) == expected


def test_a_window_a_client_chose_binds_no_other_client() -> None:
    chosen = request(extra={"num_ctx": 30_000})
    assert windows(request(), chosen, request()) == [8192, 30_000, 8192]


def test_a_plan_sends_nothing_and_changes_nothing() -> None:
    leaf = connect(KIND.settings(Link("o", "http://o", Transport())))
    planned = leaf.plan(request(LONG, tools=(TOOL,)))
    assert planned == leaf.plan(request(LONG, tools=(TOOL,)))
    assert planned[0].body["options"]["num_ctx"] == 32768
    assert leaf.windows == {}


# There and back --------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [True, False])
def test_a_forced_call_comes_back_as_a_call(streamed: bool) -> None:
    text = '{"name": "weather", "arguments": {"n": 1.0}}'
    message = {"role": "assistant", "content": text}

    async def work() -> tuple[list[Json], list[Answer]]:
        server = Server(answer={**DONE, "message": message})
        async with serving(server) as leaf:
            forced = request(tools=(TOOL,), tool_choice="required", streamed=streamed)
            answers = await ask(leaf, forced)
            return server.chats(), answers

    (body,), (answer,) = run(work())
    assert body["stream"] is streamed
    assert body["format"]["properties"]["name"]["enum"] == ["weather"]
    assert [(name, said) for _, name, _, said in answer.calls] == [("weather", '{"n": 1.0}')]
    assert (answer.text, answer.reason, answer.notes) == ("", "tool_calls", [])


def test_a_model_that_thinks_in_its_text_is_read_so_if_the_config_says_so() -> None:
    message = {"role": "assistant", "content": "<think>a</think>b"}

    async def work(**abilities: Any) -> Answer:
        async with serving(Server(answer={**DONE, "message": message}), **abilities) as leaf:
            return (await ask(leaf, request()))[0]

    flagged, plain = run(work(inline_think=True)), run(work())
    assert (flagged.reasoning, flagged.text) == ("a", "b")
    assert (plain.reasoning, plain.text) == ("", "<think>a</think>b")


def test_a_chinese_tool_is_called_by_its_own_name_again() -> None:
    tool: Json = {"type": "function", "function": {"name": "查询", "parameters": {}}}

    async def work() -> Answer:
        leaf = connect(KIND.settings(Link("o", "http://o", Transport())))
        name = leaf.plan(request(tools=(tool,)))[0].body["tools"][0]["function"]["name"]
        call = {"function": {"name": name, "arguments": {}}}
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
        async with serving(Server(answer={**DONE, "message": message})) as leaf:
            return (await ask(leaf, request(tools=(tool,))))[0]

    assert [name for _, name, *_ in run(work()).calls] == ["查询"]


def test_a_call_of_a_tool_that_was_not_asked_for_is_told() -> None:
    other: Json = {"type": "function", "function": {"name": "other", "parameters": {}}}
    call = {"function": {"name": "other", "arguments": {}}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    named = {"type": "function", "function": {"name": "weather"}}

    async def work() -> Answer:
        async with serving(Server(answer={**DONE, "message": message})) as leaf:
            return (await ask(leaf, request(tools=(TOOL, other), tool_choice=named)))[0]

    assert run(work()).notes == ["tool_unknown"]
