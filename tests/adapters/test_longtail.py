"""What reaches LiteLLM, and what becomes of its answers; LiteLLM itself only in a subprocess."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from adapters.errors import BadRequest, RateLimited, Refused, Truncated, Unavailable
from adapters.longtail import Library, Longtail, encode
from adapters.protocol import ChatRequest, Json, RequestContext, Usage
from adapters.wire.http import Link, Timeouts, Transport
from tests.support.dialogue import assistant, result, user
from tests.support.fold import Answer, fold, run

HELLO = (user("hello"),)
EVERYTHING = frozenset({"tools", "temperature", "response_format", "user", "max_tokens"})
LINK = Link("tail", "", Transport())


@dataclass
class Response:
    headers: Mapping[str, str]


class Failure(Exception):
    """As LiteLLM's own: a status, a message, the headers of the answer."""

    def __init__(self, status_code: int, message: str, response: Response | None = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.message = message
        self.response = response


@dataclass
class Model:
    """One of LiteLLM's answer objects."""

    said: Json

    def model_dump(self) -> Json:
        return self.said


def chunk(delta: Json, reason: str | None = None, **top: Any) -> Json:
    choice = {"index": 0, "delta": {"function_call": None, **delta}, "finish_reason": reason}
    return {"model": "theirs", "choices": [choice], "citations": None, **top}


class Stream:
    """As LiteLLM's: a number waits for so many seconds, an exception is raised."""

    def __init__(self, told: Sequence[Json | Exception | float]) -> None:
        self._told = iter(told)
        self.closed = 0

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Model:
        item = next(self._told, None)
        if item is None:
            raise StopAsyncIteration
        if isinstance(item, Exception):
            raise item
        if isinstance(item, float):
            await asyncio.sleep(item)
            return await anext(self)
        return Model(item)

    async def aclose(self) -> None:
        self.closed += 1


@dataclass
class Fake:
    """Answers in LiteLLM's place and keeps what it was asked."""

    answer: Any
    known: list[str] | None = None
    asked: list[Json] = field(default_factory=list)

    async def complete(self, **asked: Any) -> Any:
        self.asked.append(asked)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def supported(self, model: str) -> list[str] | None:
        return self.known

    def leaf(self, link: Link = LINK, **credentials: Any) -> Longtail:
        return Longtail(
            link, Library(self.complete, self.complete, self.supported, (Failure,)), credentials
        )


def request(streamed: bool = False, **given: Any) -> ChatRequest:
    asked = {
        "model": "acme/m",
        "messages": HELLO,
        "call": RequestContext(streamed=streamed),
        **given,
    }
    return ChatRequest(**asked)


def heard(*told: Json | Exception | float, link: Link = LINK) -> Answer:
    return run(fold(Fake(Stream(told)).leaf(link).stream(request(streamed=True))))


# What goes up ----------------------------------------------------------------------------------


def test_what_steers_litellm_comes_from_the_config_alone() -> None:
    evil: Json = {"api_base": "http://evil", "api_key": "x", "custom_llm_provider": "openai"}
    evil |= {"mock_response": "x", "fallbacks": [], "vertex_credentials": "/etc/passwd"}
    evil |= {"callbacks": [], "cache": {}, "input_cost_per_token": 1, "anything": 1}
    fake = Fake(Model(whole("hi")))
    leaf = fake.leaf(api_key="ours", api_base="http://ours")
    answer = run(fold(leaf.stream(request(extra={**evil, "top_k": 4}))))
    [asked] = fake.asked
    assert asked == {
        "model": "acme/m",
        "messages": list(HELLO),
        "top_k": 4,
        "api_key": "ours",
        "api_base": "http://ours",
        "num_retries": 0,
        "max_retries": 0,
    }
    assert answer.opened is not None
    assert {note.field for note in answer.opened.receipt} == evil.keys()


def whole(text: str) -> Json:
    message = {"role": "assistant", "content": text, "tool_calls": None}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "cost": 0.1}
    return {
        "model": "theirs",
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": usage,
    }


def test_a_parameter_the_provider_lacks_is_left_out_by_name() -> None:
    params = {"temperature": 1, "seed": 1, "metadata": {"a": "b"}, "stream_options": {}, "n": 1}
    body, receipt, _ = encode(request(params=params), EVERYTHING)
    assert body == {"model": "acme/m", "messages": list(HELLO), "temperature": 1}
    assert [note.field for note in receipt] == ["metadata", "seed"]
    body, *_ = encode(request(params=params), None)
    assert body["seed"] == 1


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"tools": ({"type": "function", "function": {"name": "f"}},)}, "tools"),
        ({"params": {"response_format": {"type": "json_object"}}}, "response_format"),
        ({"params": {"logprobs": True}}, "logprobs"),
        ({"params": {"n": 2}}, "n"),
    ],
)
def test_what_the_answer_would_lack_is_refused(given: Json, param: str) -> None:
    with pytest.raises(BadRequest) as caught:
        encode(request(**given), frozenset({"temperature"}))
    assert caught.value.param == param


def test_custom_and_allowed_tools_are_put_in_words_litellm_knows() -> None:
    function = {"type": "function", "function": {"name": "f"}}
    allowed = {"mode": "required", "tools": [function]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    tools = (function, {"type": "custom", "custom": {"name": "run"}})
    body, *_ = encode(request(tools=tools, tool_choice=choice), None)
    assert [tool["function"]["name"] for tool in body["tools"]] == ["f"]
    assert body["tool_choice"] == "required"
    assert all(
        tool["type"] == "function" for tool in encode(request(tools=tools), None)[0]["tools"]
    )


def test_thoughts_a_client_echoes_are_handed_on() -> None:
    turn = {**assistant(None, ("a", "f", "{}")), "thinking_blocks": [{"signature": "s"}]}
    body, *_ = encode(request(messages=(*HELLO, turn, result("a", "x"))), None)
    assert body["messages"][1] == turn


def test_a_plan_names_no_credentials() -> None:
    leaf = Fake(None).leaf(api_key="canary")
    [planned] = leaf.plan(request())
    assert planned.url == "litellm:acme/m"
    assert "canary" not in repr(planned) + repr(leaf)


# What comes back -------------------------------------------------------------------------------


def test_a_plain_answer() -> None:
    answer = run(fold(Fake(Model(whole("hi"))).leaf().stream(request())))
    assert (answer.text, answer.reason, answer.usage) == ("hi", "stop", Usage(3, 2))
    assert answer.opened is not None
    assert (answer.opened.upstream.name, answer.opened.upstream.model) == ("tail", "theirs")


CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def test_a_streamed_answer_leaves_chunk_by_chunk() -> None:
    usage = {
        "model": "theirs",
        "choices": [],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
    answer = heard(
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "hi", "tool_calls": None}),
        chunk({"content": None, "tool_calls": [CALL]}),
        chunk({}, "tool_calls"),
        usage,
    )
    assert (answer.reasoning, answer.text, answer.reason) == ("hm", "hi", "tool_calls")
    assert (answer.calls, answer.usage) == ([("a", "f", "function", "{}")], Usage(3, 2))
    assert len(answer.batches) == 4


def test_a_stream_without_a_reason_is_a_cut() -> None:
    answer = heard(chunk({"content": "hi"}))
    assert (answer.text, answer.reason) == ("hi", "")
    assert isinstance(answer.error, Truncated)


@pytest.mark.parametrize(
    ("status", "kind", "seen"),
    [(400, Refused, 400), (401, Refused, 502), (429, RateLimited, 429), (503, Unavailable, 503)],
)
def test_its_failures_go_by_their_status(status: int, kind: type[Exception], seen: int) -> None:
    failure = Failure(status, "AcmeException - key canary-1234 is bad")
    link = replace(LINK, secrets=("canary-1234",))
    first = run(fold(Fake(failure).leaf(link).stream(request())))
    late = heard(chunk({"content": "half"}), failure, link=link)
    for answer in (first, late):
        assert type(answer.error) is kind
        assert answer.error.status == seen
        assert "canary" not in str(answer.error)
        assert answer.reason == ""
    assert (first.batches, late.text) == ([], "half")


def test_its_failures_never_repeat_the_clients_key() -> None:
    leaf = Fake(Failure(401, "key canary-1234 is bad")).leaf(replace(LINK, opened_by="bearer"))
    answer = run(fold(leaf.stream(request(call=RequestContext(key="canary-1234")))))
    assert "key [secret] is bad" in str(answer.error)


def test_how_long_to_wait_is_passed_on() -> None:
    failure = Failure(429, "slow down", Response({"retry-after": "7"}))
    answer = run(fold(Fake(failure).leaf().stream(request())))
    assert answer.error is not None
    assert answer.error.retry_after == "7"


def test_silence_ends_in_a_timeout_before_and_within_a_stream() -> None:
    link = replace(LINK, timeouts=Timeouts(first_event=0.02, idle=0.02))
    for told in ((5.0,), (chunk({"content": "a"}), 5.0)):
        answer = heard(*told, link=link)
        assert isinstance(answer.error, Unavailable)
        assert (answer.error.status, answer.error.code) == (504, "upstream_timeout")


def test_a_stream_is_closed_at_its_end_and_when_the_client_leaves() -> None:
    async def leave(told: Stream) -> None:
        stream = Fake(told).leaf().stream(request(streamed=True))
        await anext(stream)
        await stream.aclose()

    ended = Stream([chunk({"content": "a"}), chunk({}, "stop")])
    run(fold(Fake(ended).leaf().stream(request(streamed=True))))
    left = Stream([chunk({"content": "a"}), chunk({"content": "b"})])
    run(leave(left))
    assert (ended.closed, left.closed) == (1, 1)


# LiteLLM itself --------------------------------------------------------------------------------

REAL = """
import asyncio, sys
from adapters.longtail import KIND, connect
from adapters.wire.http import Link, Transport
from adapters.protocol import RequestContext, ChatRequest, Finish, TextDelta
from adapters.errors import GatewayError

assert "litellm" not in sys.modules
link = Link("tail", "", Transport(), headers={"authorization": "Bearer k", "user-agent": "x"})
leaf = connect(KIND.settings(link, options={"litellm": {"mock_response": "hello there"}}))
assert leaf.credentials["api_key"] == "k" and "extra_headers" not in leaf.credentials

async def ask(model, streamed):
    user = {"role": "user", "content": "hi"}
    asked = ChatRequest(model, (user,), params={"seed": 1}, call=RequestContext(streamed=streamed))
    return [event async for batch in leaf.stream(asked) for event in batch]

for streamed in (False, True):
    events = asyncio.run(ask("openai/gpt-4o", streamed))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text == "hello there", events
    assert isinstance(events[-1], Finish) and events[-1].reason == "stop" and events[-1].usage
try:
    asyncio.run(ask("nobody/x", False))
except GatewayError as error:
    assert error.status == 400, error
else:
    raise AssertionError("an unknown provider answered")
print("all well")
"""


def test_litellm_itself_is_spoken_to() -> None:
    root = Path(__file__).resolve().parents[2]
    run_real = subprocess.run(
        [sys.executable, "-c", REAL],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run_real.stdout.strip().endswith("all well"), run_real.stderr[-2000:]
