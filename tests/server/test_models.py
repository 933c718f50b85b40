"""The model list: names clients can use, filled by the upstreams that answer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import orjson
import pytest

from adapters.kind import known_kind
from adapters.shared.model_list import read_models
from adapters.shared.traits import Traits
from middleware.server import catalog
from tests.server.upstreams import RELAY, SHOWN, by_id, ollama, shipped
from tests.support.day_one import Json, Seen, answering, failure, running
from tests.support.paths import ROOT
from tests.support.upstreams.loopback import Behaviour, loopback

WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def test_an_ollama_that_is_found_is_listed_model_by_model_and_calls_tools() -> None:
    async def run() -> None:
        seen = Seen()
        async with loopback(answering(seen, ollama)) as up, running(shipped(up.url)) as gateway:
            status, listed = await gateway.get("/v1/models")
            assert status == 200
            found = by_id(listed)
            assert {name: found[f"ollama/{name}"]["context_length"] for name in SHOWN} == {
                name: shown["length"] for name, shown in SHOWN.items()
            }
            assert "ollama/*" not in found
            able, plain, thinker = (found[f"ollama/{name}"]["x_usetool"] for name in SHOWN)
            assert [one["abilities"]["tools"] for one in (able, plain, thinker)] == [
                "native", "emulated", "native",
            ]  # fmt: skip
            assert [one["abilities"]["reasoning"] for one in (able, plain, thinker)] == [
                False, False, True,
            ]  # fmt: skip
            assert able["abilities"]["family"] == "qwen3"
            assert able["model_info"]["function_calling"] is plain["model_info"]["function_calling"]
            question = {"role": "user", "content": "What is the weather in Shenyang?"}
            body = {"model": "ollama/able:8b", "messages": [question], "tools": [WEATHER]}
            _, answer = await gateway.chat(body)
            (call,) = answer["choices"][0]["message"]["tool_calls"]
            assert call["function"] == {"name": "get_weather", "arguments": '{"city":"Shenyang"}'}
            await twelve_turns(gateway.chat, answer["choices"][0]["message"], question)
            windows = {body["options"]["num_ctx"] for body in seen.bodies("/api/chat")}
            assert len(seen.bodies("/api/chat")) == 13
            assert len(windows) <= 2

    asyncio.run(run())


async def twelve_turns(chat: object, said: Json, question: Json) -> None:
    """A conversation that grows."""
    assert callable(chat)
    (call,) = said["tool_calls"]
    messages = [question, said]
    messages.append({"role": "tool", "tool_call_id": call["id"], "content": "sunny " * 400})
    for turn in range(12):
        body = {"model": "ollama/able:8b", "messages": messages, "tools": [WEATHER]}
        status, answer = await chat(body)
        assert status == 200, answer
        messages.append(answer["choices"][0]["message"])
        messages.append({"role": "user", "content": f"{turn}: tell me more, " + "please " * 300})


def relay(path: str, head: str, body: Json) -> tuple[str, bytes]:
    entries = [
        {"id": "gpt-4o"},
        {"id": "org/tiny", "context_length": 4096, "supported_parameters": ["tools"]},
        {"id": "served", "max_model_len": 32000},
    ]
    return "200 OK", orjson.dumps({"object": "list", "data": entries})


def test_wildcards_are_filled_by_their_upstream_asked_once_for_all() -> None:
    async def run() -> None:
        seen = Seen()
        async with (
            loopback(answering(seen, relay)) as up,
            running(RELAY.replace("URL", up.url)) as gateway,
        ):
            lists = await asyncio.gather(*[gateway.get("/v1/models") for _ in range(5)])
            found = by_id(lists[0][1])
            assert [*found] == [
                "relay/gpt-4o", "relay/org/tiny", "relay/served", "own-4o", "relay/pinned",
            ]  # fmt: skip
            assert [path for path, _, _ in seen.requests] == ["/v1/models"]
            assert found["relay/org/tiny"]["context_length"] == 4096
            assert found["relay/org/tiny"]["max_model_len"] == 4096
            assert found["relay/served"]["max_model_len"] == 32000
            vision = {
                name: found[name]["x_usetool"]["abilities"]["vision"]
                for name in ("own-4o", "relay/pinned")
            }
            assert vision == {"own-4o": True, "relay/pinned": False}
            status, one = await gateway.get("/v1/models/relay/org/tiny")
            assert (status, one["id"]) == (200, "relay/org/tiny")
            assert (await gateway.get("/v1/models/none"))[0] == 404

    asyncio.run(run())


@pytest.mark.parametrize("tags", [5, ["x"], {"models": 5}, {"models": {"a": 1}}, {"models": ["x"]}])
def test_an_ollama_that_lists_something_odd_leaves_the_list_whole(tags: object) -> None:
    async def run() -> None:
        def odd(path: str, head: str, body: Json) -> tuple[str, bytes]:
            return "200 OK", orjson.dumps(tags)

        async with loopback(answering(Seen(), odd)) as up, running(shipped(up.url)) as gateway:
            status, listed = await gateway.get("/v1/models?all=true")
            assert status == 200
            told = by_id(listed)["ollama/*"]["x_usetool"]
            assert "no model was found" in told["reason"]
            assert (await gateway.get("/api/tags"))[0] == 200

    asyncio.run(run())


def refused(path: str, head: str, body: Json) -> tuple[str, bytes]:
    return "401 Unauthorized", failure("bad key")


def garbled(path: str, head: str, body: Json) -> tuple[str, bytes]:
    return "200 OK", b'{"data": [1, {"id": 7}, {"no": "id"}]}'


@pytest.mark.parametrize(
    ("behave", "reason"),
    [(answering(Seen(), refused), "bad key"), (answering(Seen(), garbled), "")],
)
def test_an_upstream_that_does_not_say_leaves_the_list_whole(
    behave: Behaviour, reason: str
) -> None:
    async def run() -> None:
        async with loopback(behave) as up, running(RELAY.replace("URL", up.url)) as gateway:
            assert [*by_id((await gateway.get("/v1/models"))[1])] == ["relay/pinned"]
            status, listed = await gateway.get("/v1/models?all=true")
            assert status == 200
            found = by_id(listed)
            assert sorted(found) == ["own-*", "relay/*", "relay/pinned"]
            said = found["relay/*"]["x_usetool"]
            assert said["available"] is (reason == "")
            assert reason in said.get("reason", "")

    asyncio.run(run())


def test_models_of_servers_are_read_whatever_stands_among_them() -> None:
    assert read_models([{"id": "a"}]) == {"a": Traits()}
    nothings: tuple[Any, ...] = (None, [], {}, {"data": None}, {"data": [1, None]}, "x")
    for nothing in nothings:
        assert read_models(nothing) == {}


def test_the_catalogue_knows_without_importing_litellm() -> None:
    program = (
        "import sys; from adapters.claude import KIND; from middleware.server import catalog;"
        "t = catalog.known(KIND, 'claude-sonnet-4-5');"
        "assert 'litellm' not in sys.modules; print(t.context_length, t.max_output, t.tools)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["200000", "64000", "True"]
    assert catalog.known(known_kind("ollama"), "gpt-4o") == Traits()
    assert catalog.known(known_kind("compatible"), "no-such-model") == Traits()


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("gpt-4o-mini", "gpt-4o"), ("gpt-4.1", "gpt-41"), ("claude-sonnet-4-5", "claude-4-sonnet"),
        ("claude-opus-4-5", "claude-4-opus"), ("anthropic/claude-3-5-haiku", "claude-3-5-haiku"),
        ("deepseek-chat", "unknown"),
    ],
)  # fmt: skip
def test_families_are_those_autogen_knows(name: str, family: str) -> None:
    assert catalog.family(name) == family
