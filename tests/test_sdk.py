"""The real OpenAI SDK as a client, on every recorded case of every upstream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from adapters.protocol import Json
from tests.support.cases import NOTE
from tests.support.recordings import Upstream, upstreams
from tests.support.served import KEY, ask_of, cut_after, gateway, served, stanza
from tests.support.upstreams.loopback import loopback

T = TypeVar("T")
Ask = Callable[[AsyncOpenAI], Awaitable[T]]
Asker = Callable[[Ask[Any]], Any]
WEATHER = ("get_weather", {"city": "沈阳"})
SAID: dict[str, tuple[str | None, list[tuple[str, Json]]]] = {
    "text": ("你好, 沈阳! It's -12°C 🌨️ today.", []),
    "one_call": (None, [WEATHER]),
    "parallel_calls": (None, [WEATHER, ("get_weather", {"city": "Oslo"})]),
    "text_before_call": ("Let me check.", [WEATHER]),
    "tool_result_turn": ("RESULT get_weather=-12°C, 🌨️", []),
    "reasoning": ("Because of the continental climate.", []),
    "reasoning_call": (None, [WEATHER]),
    "no_argument_call": (None, [("get_time", {})]),
    "long_arguments": (None, [("save_note", NOTE)]),
    "structured_output": ('{"city":"沈阳","degrees":-12}', []),
}
FAILURES: dict[str, tuple[type[openai.APIStatusError], int]] = {
    "bad_request": (openai.BadRequestError, 400),
    "rate_limited": (openai.RateLimitError, 429),
    "overloaded": (openai.InternalServerError, 503),
}
every_upstream = pytest.mark.parametrize(
    "upstream", upstreams(), ids=[upstream.name for upstream in upstreams()]
)
every_case = pytest.mark.parametrize("case", SAID)


@pytest.fixture(scope="module")
def ask() -> Iterator[Asker]:
    """One gateway for all; each question gets a client of its own."""
    with asyncio.Runner() as runner:
        serving = served()
        url = runner.run(serving.__aenter__())

        async def with_client(question: Ask[Any]) -> Any:
            async with AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0) as client:
                return await question(client)

        yield lambda question: runner.run(with_client(question))
        runner.run(serving.__aexit__(None, None, None))


def plainly(upstream: Upstream, case: str) -> Ask[ChatCompletion]:
    return lambda client: client.chat.completions.create(**ask_of(upstream, case))


def streamed(upstream: Upstream, case: str) -> Ask[list[ChatCompletionChunk]]:
    async def question(client: AsyncOpenAI) -> list[ChatCompletionChunk]:
        stream = await client.chat.completions.create(
            **ask_of(upstream, case), stream=True, stream_options={"include_usage": True}
        )
        return [chunk async for chunk in stream]

    return question


@every_upstream
@every_case
def test_a_plain_answer(ask: Asker, upstream: Upstream, case: str) -> None:
    completion = ask(plainly(upstream, case))
    (choice,) = completion.choices
    calls = [
        (call.function.name, json.loads(call.function.arguments))
        for call in choice.message.tool_calls or ()
    ]
    assert (choice.message.content or None, calls) == SAID[case]
    assert choice.finish_reason == ("tool_calls" if calls else "stop")
    assert choice.message.role == "assistant"
    assert bool(getattr(choice.message, "reasoning_content", None)) == case.startswith("reasoning")
    assert completion.object == "chat.completion"
    assert completion.id.startswith("chatcmpl-")
    assert completion.model == ask_of(upstream, case)["model"]
    usage = completion.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


@every_upstream
@every_case
def test_a_stream(ask: Asker, upstream: Upstream, case: str) -> None:
    *chunks, last = ask(streamed(upstream, case))
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in (*chunks, last)}) == 1
    assert last.choices == []
    assert last.usage.total_tokens > 0
    assert all(len(chunk.choices) == 1 for chunk in chunks)
    choices = [chunk.choices[0] for chunk in chunks]
    assert [choice.delta.role for choice in choices if choice.delta.role] == ["assistant"]
    assert choices[0].delta.role == "assistant"
    assert {choice.finish_reason for choice in choices[:-1]} == {None}
    text = "".join(choice.delta.content or "" for choice in choices)
    calls = joined(choices)
    assert (text or None, calls) == SAID[case]
    assert choices[-1].finish_reason == ("tool_calls" if calls else "stop")


def joined(choices: list[Any]) -> list[tuple[str, Json]]:
    """Put calls together as every client does: by index, the name once, arguments in pieces."""
    found: list[tuple[str, str]] = []
    for piece in [piece for choice in choices for piece in choice.delta.tool_calls or ()]:
        if piece.index == len(found):
            assert piece.id
            assert piece.type == "function"
            found.append((piece.function.name, ""))
        else:
            assert piece.index == len(found) - 1
            assert piece.id is None
            assert piece.function.name is None
        name, said = found[piece.index]
        found[piece.index] = (name, said + (piece.function.arguments or ""))
    return [(name, json.loads(said)) for name, said in found]


@every_upstream
@pytest.mark.parametrize("case", ["parallel_calls", "text_before_call", "reasoning", "text"])
def test_the_sdks_own_fold_of_a_stream_is_the_plain_answer(
    ask: Asker, upstream: Upstream, case: str
) -> None:
    async def fold(client: AsyncOpenAI) -> Any:
        async with client.chat.completions.stream(**ask_of(upstream, case)) as stream:
            return await stream.get_final_completion()

    folded, plain = ask(fold).choices[0], ask(plainly(upstream, case)).choices[0]
    assert folded.finish_reason == plain.finish_reason
    assert (folded.message.content or None) == (plain.message.content or None)
    for one, other in zip(
        folded.message.tool_calls or (), plain.message.tool_calls or (), strict=True
    ):
        assert one.function.name == other.function.name
        assert json.loads(one.function.arguments) == json.loads(other.function.arguments)


@every_upstream
@pytest.mark.parametrize("question", [plainly, streamed])
@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_is_the_sdks_own_class(
    ask: Asker, upstream: Upstream, question: Callable[[Upstream, str], Ask[Any]], case: str
) -> None:
    kind, status = FAILURES[case]
    with pytest.raises(kind) as caught:
        ask(question(upstream, case))
    assert caught.value.status_code == status
    assert "scripted failure" in caught.value.message
    assert caught.value.request_id


def test_a_wrong_key_and_an_unknown_model(ask: Asker) -> None:
    async def wrong_key(client: AsyncOpenAI) -> None:
        await client.with_options(api_key="wrong").models.list()

    async def unknown_model(client: AsyncOpenAI) -> None:
        await client.chat.completions.create(
            model="claud", messages=[{"role": "user", "content": "hi"}]
        )

    with pytest.raises(openai.AuthenticationError):
        ask(wrong_key)
    with pytest.raises(openai.NotFoundError, match="claude") as caught:
        ask(unknown_model)
    assert caught.value.code == "model_not_found"


def test_the_list_of_models(ask: Asker) -> None:
    async def names(client: AsyncOpenAI) -> list[str]:
        one = await client.models.retrieve("claude")
        return [one.id, *[model.id async for model in client.models.list()]]

    assert set(ask(names)) >= {upstream.name for upstream in upstreams()}


@every_upstream
def test_a_stream_that_breaks_raises_and_does_not_finish(upstream: Upstream) -> None:
    async def check() -> None:
        async with (
            loopback(cut_after(upstream, "text", 700)) as up,
            gateway(stanza(upstream, up.url)) as url,
            AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0) as client,
        ):
            stream = await client.chat.completions.create(**ask_of(upstream, "text"), stream=True)
            reasons = []
            with pytest.raises(openai.APIError, match=r"broke off|cut|ended"):
                reasons.extend([chunk.choices[0].finish_reason async for chunk in stream])
            assert set(reasons) <= {None}

    asyncio.run(check())
