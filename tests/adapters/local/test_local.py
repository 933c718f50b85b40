"""The embedded model by a script: what is said, heard and refused, and whose turn it is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from adapters.errors import BadRequest, Busy, Refused
from adapters.local import Local
from adapters.local.engine import Engine, Heard
from adapters.local.files import Model
from adapters.protocol import ChatRequest, Events, Json, RequestContext
from tests.adapters.local.scripts import HELLO, LINK
from tests.support.dialogue import user
from tests.support.fold import fold, run

MODEL = Model("/models/small.gguf")


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
        return Local(LINK, MODEL, Engine(self.handle, waiting))


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
