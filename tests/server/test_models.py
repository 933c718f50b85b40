"""The model list: names clients can use, with limits and abilities, whoever is away."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from adapters.shared.model_list import read_models
from adapters.shared.traits import Traits
from middleware.server import catalog
from tests.support.day_one import Json, Seen, answering, completion, failure, running
from tests.support.paths import ROOT
from tests.support.upstreams.loopback import Behaviour, loopback

SHOWN: dict[str, Json] = {
    "able:8b": {"family": "qwen3", "length": 40960, "capabilities": ["completion", "tools"]},
    "plain:1b": {"family": "gemma", "length": 8192, "capabilities": ["completion"]},
    "thinker:7b": {
        "family": "qwen3", "length": 131072, "capabilities": ["completion", "tools", "thinking"],
    },
}  # fmt: skip
WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def ollama(path: str, head: str, body: Json) -> tuple[str, bytes]:
    """Three models; a tool call for who offers tools."""
    if path == "/api/tags":
        return "200 OK", orjson.dumps({"models": [{"name": name, "model": name} for name in SHOWN]})
    shown = SHOWN.get(body["model"])
    if shown is None:
        return "404 Not Found", orjson.dumps({"error": f"model '{body['model']}' not found"})
    if path == "/api/show":
        said = {
            "details": {"family": shown["family"]},
            "capabilities": shown["capabilities"],
            "model_info": {"general.architecture": "a", "a.context_length": shown["length"]},
        }
        return "200 OK", orjson.dumps(said)
    if path == "/api/embed":
        count = len(body["input"])
        return "200 OK", orjson.dumps({"embeddings": [[0.5, -1.0]] * count, "prompt_eval_count": 4})
    message: Json = {"role": "assistant", "content": "It is sunny."}
    asked = body["messages"][-1]["role"] == "user" and "weather" in body["messages"][-1]["content"]
    if "tools" in body and asked:
        call = {"function": {"name": "get_weather", "arguments": {"city": "Shenyang"}}}
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
    said = {"model": body["model"], "message": message, "done": True, "done_reason": "stop"}
    return "200 OK", orjson.dumps({**said, "prompt_eval_count": 5, "eval_count": 3}) + b"\n"


def shipped(url: str) -> str:
    """The config as it is shipped, with Ollama on another port."""
    text = (ROOT / "config.toml").read_text("utf-8")
    return text.replace('kind = "ollama"', f'kind = "ollama"\nbase_url = "{url}"')


def by_id(listed: Json) -> dict[str, Json]:
    return {entry["id"]: entry for entry in listed["data"]}


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


RELAY = """
[upstreams.relay]
kind = "compatible"
base_url = "URL/v1"
[models."relay/*"]
upstream = "relay"
name = "*"
[models."own-*"]
upstream = "relay"
name = "gpt-*"
[models."relay/pinned"]
upstream = "relay"
name = "gpt-4o"
vision = false
"""


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


KEYLESS = """
[upstreams.claude]
kind = "claude"
api_key = "env:CLAUDE"
[upstreams.deepseek]
kind = "deepseek"
api_key = "env:DEEPSEEK"
[upstreams.openai]
kind = "compatible"
base_url = "https://api.openai.com/v1"
api_key = "env:OPENAI"
[models.sonnet]
upstream = "claude"
name = "claude-sonnet-5-5"
[models.old]
upstream = "claude"
name = "claude-3-haiku-20240307"
abilities = { vision = false }
[models."c/*"]
upstream = "claude"
name = "claude-*"
[models.deepseek]
upstream = "deepseek"
name = "deepseek-v4-pro"
[models.gpt]
upstream = "openai"
name = "gpt-4o"
[models.two]
pipeline = "reason-then-answer"
reasoner = "deepseek"
answerer = "sonnet"
"""


def test_what_a_model_can_do_is_told_without_its_key_too() -> None:
    names = ("sonnet", "old", "c/opus-4-5", "deepseek", "gpt", "two")

    async def told(environment: Mapping[str, str]) -> dict[str, Json]:
        async with running(KEYLESS, environment) as gateway:
            return {name: (await gateway.get(f"/v1/models/{name}"))[1] for name in names}

    keys = dict.fromkeys(("CLAUDE", "DEEPSEEK", "OPENAI"), "k")
    with_keys, without = asyncio.run(told(keys)), asyncio.run(told({}))
    for name in names:
        for member in ("context_length", "max_output_tokens"):
            assert with_keys[name].get(member) == without[name].get(member)
        for member in ("abilities", "model_info"):
            assert with_keys[name]["x_usetool"][member] == without[name]["x_usetool"][member]
        assert not without[name]["x_usetool"]["available"]
    info = without["sonnet"]["x_usetool"]["model_info"]
    assert (info["vision"], info["structured_output"], info["family"]) == (
        *(True, True), "claude-4-sonnet",
    )  # fmt: skip
    assert without["sonnet"]["x_usetool"]["abilities"]["reasoning"]
    assert not without["old"]["x_usetool"]["abilities"]["vision"]


AWAY = """
[upstreams.home]
kind = "ollama"
base_url = "URL"
[upstreams.far]
kind = "compatible"
base_url = "URL/v1"
api_key = "env:NO_SUCH_KEY"
[upstreams.demo]
kind = "scripted"
[models."home/*"]
upstream = "home"
name = "*"
[models.able]
upstream = "home"
name = "able:8b"
[models.gone]
upstream = "home"
name = "gone:1b"
[models.cloud]
upstream = "home"
name = "large:1t-cloud"
[models.far]
upstream = "far"
[models.demo]
upstream = "demo"
"""


def lines(text: str, path: Path) -> tuple[str, str]:
    """What `usetool check` and `usetool models` say of a config."""
    path.write_text(f'[recall]\nstore = "off"\n{text}', "utf-8")
    said = [
        subprocess.run(
            [sys.executable, "-m", "middleware", command, "--config", str(path)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        ).stdout
        for command in ("check", "models")
    ]  # fmt: skip
    return said[0], said[1]


def test_clients_are_shown_what_can_answer_and_check_agrees(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            loopback(answering(Seen(), ollama)) as up,
            running(AWAY.replace("URL", up.url)) as gateway,
        ):
            able = ["home/plain:1b", "home/thinker:7b", "able", "cloud", "demo"]
            shown = by_id((await gateway.get("/v1/models"))[1])
            assert [*shown] == ["home/able:8b", *able]
            assert all(one["x_usetool"]["available"] for one in shown.values())
            every = by_id((await gateway.get("/v1/models?all=true"))[1])
            assert every.keys() - shown.keys() == {"gone", "far"}
            assert "ollama pull gone:1b" in every["gone"]["x_usetool"]["reason"]
            asked = asyncio.to_thread(lines, AWAY.replace("URL", up.url), tmp_path / "a.toml")
            check, models = await asked
            assert "4 of 6 models available" in check
            assert "does not have 'gone:1b'" in check
            assert models.count("available") == 4

    asyncio.run(run())


def test_what_is_away_is_shown_to_nobody(tmp_path: Path) -> None:
    text = AWAY.replace("URL", "http://127.0.0.1:9")

    async def run() -> None:
        async with running(text) as gateway:
            assert [*by_id((await gateway.get("/v1/models"))[1])] == ["demo"]
            every = by_id((await gateway.get("/v1/models?all=1"))[1])
            assert every["home/*"]["x_usetool"]["available"] is False
            assert every["able"]["x_usetool"]["available"] is False

    asyncio.run(run())
    check, models = lines(text, tmp_path / "a.toml")
    assert "1 of 6 models available" in check
    assert models.count("available") == 1


def test_models_of_servers_are_read_whatever_stands_among_them() -> None:
    assert read_models([{"id": "a"}]) == {"a": Traits()}
    nothings: tuple[Any, ...] = (None, [], {}, {"data": None}, {"data": [1, None]}, "x")
    for nothing in nothings:
        assert read_models(nothing) == {}


def test_the_catalogue_knows_without_importing_litellm() -> None:
    program = (
        "import sys; from middleware.server import catalog;"
        "t = catalog.known('claude', 'claude-sonnet-4-5');"
        "assert 'litellm' not in sys.modules; print(t.context_length, t.max_output, t.tools)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["200000", "64000", "True"]
    assert catalog.known("ollama", "gpt-4o") == Traits()
    assert catalog.known("compatible", "no-such-model") == Traits()


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


# Embeddings ------------------------------------------------------------------------------------


def embedded(path: str, head: str, body: Json) -> tuple[str, bytes]:
    if path != "/v1/embeddings":
        return "200 OK", completion()
    data = [{"object": "embedding", "index": 0, "embedding": "AAAAPw=="}]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    said = {"object": "list", "data": data, "model": "m", "usage": usage}
    return "200 OK", orjson.dumps(said)


def test_a_plain_string_is_embedded_as_dify_validates() -> None:
    async def run() -> None:
        seen = Seen()
        async with (
            loopback(answering(seen, embedded)) as up,
            running(RELAY.replace("URL", up.url)) as gateway,
        ):
            body: Json = {"model": "relay/emb", "input": "ping", "encoding_format": "base64"}
            status, answer = await gateway.post("/v1/embeddings", body)
            assert status == 200
            assert answer["model"] == "relay/emb"
            assert answer["data"][0]["embedding"] == "AAAAPw=="
            assert seen.bodies("/v1/embeddings") == [{**body, "model": "emb"}]
            status, _ = await gateway.post("/v1/embeddings", {**body, "input": [[1, 2], [3]]})
            assert status == 200

    asyncio.run(run())


def test_ollamas_vectors_take_openais_shape() -> None:
    async def run() -> None:
        async with loopback(answering(Seen(), ollama)) as up, running(shipped(up.url)) as gateway:
            body: Json = {"model": "ollama/plain:1b", "input": ["a", "b"]}
            status, answer = await gateway.post("/v1/embeddings", body)
            assert status == 200
            assert [one["embedding"] for one in answer["data"]] == [[0.5, -1.0]] * 2
            assert answer["usage"] == {"prompt_tokens": 4, "total_tokens": 4}
            packed = {**body, "input": "a", "encoding_format": "base64"}
            _, answer = await gateway.post("/v1/embeddings", packed)
            assert answer["data"][0]["embedding"] == "AAAAPwAAgL8="
            status, answer = await gateway.post("/v1/embeddings", {**body, "input": [1, 2]})
            assert (status, answer["error"]["param"]) == (400, "input")
            status, answer = await gateway.post("/v1/embeddings", {**body, "model": "demo"})
            assert (status, answer["error"]["param"]) == (400, "model")
            assert "request id req_" in answer["error"]["message"]

    asyncio.run(run())


@pytest.mark.parametrize(
    "change",
    [{"input": ""}, {"input": []}, {"input": [""]}, {"input": 3}, {"input": ["a", 1]},
     {"encoding_format": "hex"}, {"dimensions": 0}, {"model": ""}],
)  # fmt: skip
def test_misshapen_embedding_requests_are_named(change: Json) -> None:
    async def run() -> None:
        async with running(RELAY.replace("URL", "http://127.0.0.1:1")) as gateway:
            body = {"model": "relay/emb", "input": "a", **change}
            status, answer = await gateway.post("/v1/embeddings", body)
            assert status == 400
            assert answer["error"]["param"] == next(iter(change))

    asyncio.run(run())
