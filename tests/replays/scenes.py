"""What the cassettes are recorded of: upstreams, a config over them, and who asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import orjson
from openai import APIStatusError, OpenAI

from adapters.protocol import Json
from tests.replays.agent import work
from tests.support.cases import CASES, SCHEMA, WEATHER
from tests.support.day_one import completion
from tests.support.paths import ROOT
from tests.support.recordings import Upstream, upstreams
from tests.support.served import ask_of, says_what_it_said, stanza
from tests.support.text_only import BAD, OSLO
from tests.support.upstreams.claude_wire import begin, call, end, sse, text, thought
from tests.support.upstreams.loopback import Behaviour, Peer

FOLDER = ROOT / "tests/replays"
EVENTS, JSON = "text/event-stream", "application/json"


class Scene(NamedTuple):
    upstreams: Mapping[str, Behaviour]
    config: str
    """Where `{NAME}` stands for the address of an upstream."""
    ask: Callable[[OpenAI], object]


THINKER_AND_SPEAKER = """\
[upstreams.thinker]
kind = "deepseek"
base_url = "{thinker}"
api_key = "k"
[models.thinker]
upstream = "thinker"
name = "deepseek-reasoner"
[upstreams.speaker]
kind = "claude"
base_url = "{speaker}"
api_key = "k"
[models.speaker]
upstream = "speaker"
name = "claude-sonnet-4-5"
"""


def _settled(client: OpenAI, **body: Any) -> None:
    """Ask once; a failure is an answer too."""
    with suppress(APIStatusError):
        answer = client.chat.completions.create(**body)
        if body.get("stream"):
            answer.response.read()


# What was recorded of upstreams -------------------------------------------------------------------


def of_kind(upstream: Upstream) -> Scene:
    """The cases of an upstream, plain and streamed."""
    return Scene(
        {upstream.name: says_what_it_said(upstream)},
        stanza(upstream, f"{{{upstream.name}}}"),
        partial(_ask_cases, upstream),
    )


def _ask_cases(upstream: Upstream, client: OpenAI) -> None:
    for case in CASES:
        if case in upstream.cases and case != "long_arguments":  # it would be most of the file
            body = ask_of(upstream, case)
            _settled(client, **body)
            _settled(client, **body, stream=True, stream_options={"include_usage": True})


# Scripts ------------------------------------------------------------------------------------------


def says(*answers: bytes) -> Behaviour:
    """One answer after the other, event by event where it is a stream."""
    left = iter(answers)

    async def behave(peer: Peer) -> None:
        while True:
            await peer.request()
            answer = next(left)
            if answer.startswith(b"{"):
                await peer.answer(answer, f"content-type: {JSON}")
                continue
            await peer.start(f"content-type: {EVENTS}")
            for event in answer.split(b"\n\n"):
                await peer.chunk(event + b"\n\n" if event else b"")

    return behave


def chunks(*deltas: Json, reason: str = "stop") -> bytes:
    """A stream of OpenAI's."""
    head = {"id": "c1", "object": "chat.completion.chunk", "model": "m"}
    usage = {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}
    frames: Iterator[Json] = (
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    )
    last = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    said = [*frames, last, {**head, "choices": [], "usage": usage}]
    return b"".join(b"data: %b\n\n" % orjson.dumps(one) for one in said) + b"data: [DONE]\n\n"


def _user(words: str) -> Json:
    return {"role": "user", "content": words}


def agent() -> Scene:
    """A loop of tools with a model that thinks, whose thoughts the client does not send back."""
    thinks = "Both offices, "
    return Scene(
        {"claude": says(
            sse(
                begin(),
                *thought(0, thinks, "so first their names.", signature="c2lnMQ=="),
                *text(1, "I look where ", "we are."),
                *call(2, "toolu_01", "list_cities", ""),
                *end("tool_use"),
            ),
            sse(
                begin(),
                *thought(0, thinks, "at once.", signature="c2lnMg=="),
                *call(1, "toolu_02", "get_weather", '{"city":', ' "沈阳"}'),
                *call(2, "toolu_03", "get_weather", '{"city": "Oslo"}'),
                *end("tool_use"),
            ),
            sse(begin(), *text(0, "沈阳 is colder: -12°C 🌨️, ", "Oslo -3°C."), *end()),
            sse(begin(), *text(0, "Then ", "take a coat."), *end()),
        )},
        """
[upstreams.claude]
kind = "claude"
base_url = "{claude}"
api_key = "k"
[models.sonnet]
upstream = "claude"
name = "claude-sonnet-4-5"
""",
        _ask_agent,
    )  # fmt: skip


def _ask_agent(client: OpenAI) -> list[str]:
    prompt = {"role": "system", "content": "You help with travel.\nBe brief."}
    messages: list[Any] = [prompt, _user("Where is it colder?")]
    params = {"reasoning_effort": "medium", "stop": ["THE END"]}
    first = work(client, "sonnet", messages, **params)
    messages.append(_user("I go to the colder one."))
    return [first, work(client, "sonnet", messages, **params)]


def by_prompt() -> Scene:
    """A model without tools: a faulty call is asked for again, and a result is answered."""
    return Scene(
        {"toy": says(
            completion(BAD),
            completion(OSLO),
            chunks({"content": "It is "}, {"content": "-3°C in Oslo."}),
            chunks(*({"content": piece} for piece in ("Looking.\n\n", OSLO[:30], OSLO[30:]))),
            completion('{"city": "Oslo", "degrees": -3}'),
        )},
        """
[upstreams.toy]
kind = "compatible"
base_url = "{toy}/v1"
[models.toy]
upstream = "toy"
name = "toy-1b"
tools = "emulated"
""",
        _ask_by_prompt,
    )  # fmt: skip


def _ask_by_prompt(client: OpenAI) -> None:
    asked: list[Any] = [_user("How cold is it in Oslo?")]
    tools: list[Any] = [WEATHER]
    answer = client.chat.completions.create(model="toy", messages=asked, tools=tools)
    (called,) = answer.choices[0].message.tool_calls or []
    behind = [
        *asked,
        {"role": "assistant", "content": None, "tool_calls": [called.model_dump()]},
        {"role": "tool", "tool_call_id": called.id, "content": "-3°C"},
    ]
    _settled(client, model="toy", messages=behind, tools=tools, stream=True)
    _settled(client, model="toy", messages=asked, tools=tools, stream=True, tool_choice="required")
    schema = {"name": "weather", "schema": SCHEMA, "strict": True}
    wanted = {"type": "json_schema", "json_schema": schema}
    _settled(client, model="toy", messages=asked, response_format=wanted)


def pipeline() -> Scene:
    """One model thinks of what a search found, another answers."""
    found = {"title": "Sky", "url": "http://sky.test/today", "content": "It is clear.", "score": 1}
    thinks = "They found that it is clear, so it is blue."
    return Scene(
        {
            "tavily": says(*[orjson.dumps({"results": [found]})] * 2),
            "thinker": says(
                chunks(*({"reasoning_content": f"{word} "} for word in thinks.split())),
                chunks({"reasoning_content": thinks}, {"content": "Blue, I think."}),
            ),
            "speaker": says(
                sse(begin(), *text(0, "The sky ", "is blue."), *end()),
                sse(
                    begin(),
                    *text(0, "I see: "),
                    *call(1, "toolu_1", "get_weather", '{"city":"Oslo"}'),
                    *end("tool_use"),
                ),
            ),
        },
        f"""
[upstreams.tavily]
kind = "tavily"
base_url = "{{tavily}}"
api_key = "t"
{THINKER_AND_SPEAKER}[models.both]
pipeline = "reason-then-answer"
reasoner = "thinker"
answerer = "speaker"
search = "tavily"
search_when = "always"
""",
        _ask_pipeline,
    )  # fmt: skip


def _ask_pipeline(client: OpenAI) -> None:
    asked = [_user("Which colour has the sky?")]
    _settled(client, model="both", messages=asked, stream=True)
    _settled(client, model="both", messages=[_user("And in Oslo?")], tools=[WEATHER], stream=True)


def search() -> Scene:
    """A Dify chat app that declares no tool: the answerer of a pipeline searches in the gateway."""
    page = {"title": "沈阳天气预报", "url": "https://weather.test/shenyang", "score": 0.97}
    found = {"query": "沈阳天气", "results": [page | {"content": "沈阳 今天 晴 5℃ 北风3级"}]}
    return Scene(
        {
            "tavily": says(orjson.dumps(found)),
            "thinker": says(
                chunks(
                    *(
                        {"reasoning_content": one}
                        for one in ("用户想知道", "沈阳的天气", "，要查。")
                    )
                ),
                chunks({"reasoning_content": "用户问明天，结果里没有。"}),
            ),
            "speaker": says(
                sse(
                    begin(),
                    *text(0, "我查一下。"),
                    *call(1, "toolu_01", "tavily_search", '{"query":', ' "沈阳天气"}'),
                    *end("tool_use"),
                ),
                sse(begin(), *text(0, "沈阳今天晴，", "5℃，北风3级。"), *end()),
                sse(begin(), *text(0, "只查到今天的天气。"), *end()),
            ),
        },
        f"""
{THINKER_AND_SPEAKER}[tools.search]
kind = "tavily"
api_key = "t"
base_url = "{{tavily}}"
[models.deepclaude]
pipeline = "reason-then-answer"
reasoner = "thinker"
answerer = "speaker"
server_tools = ["search"]
""",
        _ask_search,
    )


def _ask_search(client: OpenAI) -> list[Json]:
    """As Dify's plugin asks for a chat app: all of the conversation, streamed, no tools."""
    messages: list[Any] = [{"role": "system", "content": "你是一个助手。"}]
    asked: Json = {"model": "deepclaude", "temperature": 0.7, "max_tokens": 8192, "user": "abc-123"}
    asked["stream_options"] = {"include_usage": True}
    said = []
    for question in ("查询沈阳天气", "那明天呢？"):
        messages.append(_user(question))
        with client.chat.completions.stream(messages=messages, **asked) as stream:
            said.append(stream.get_final_completion().choices[0].message.model_dump())
        messages.append({"role": "assistant", "content": said[-1]["content"]})
    return said


def embeddings() -> Scene:
    data = [
        {"object": "embedding", "index": at, "embedding": vector}
        for at, vector in enumerate(([0.5, -1.0, 0.25], [0.125, 2.0, 0.0]))
    ]
    usage = {"prompt_tokens": 4, "total_tokens": 4}
    answer = {"object": "list", "data": data, "model": "vectors-1", "usage": usage}
    return Scene(
        {"near": says(orjson.dumps(answer), orjson.dumps({**answer, "data": data[:1]}))},
        """
[upstreams.near]
kind = "compatible"
base_url = "{near}/v1"
[models.vectors]
upstream = "near"
name = "vectors-1"
""",
        _ask_embeddings,
    )


def _ask_embeddings(client: OpenAI) -> None:
    client.embeddings.create(model="vectors", input=["snow", "沈阳"], encoding_format="float")
    client.embeddings.create(model="vectors", input="rain", dimensions=3)


SCENES: Mapping[str, Callable[[], Scene]] = {
    **{upstream.name: partial(of_kind, upstream) for upstream in upstreams()},
    "agent": agent,
    "by-prompt": by_prompt,
    "pipeline": pipeline,
    "search": search,
    "embeddings": embeddings,
}
