"""The addresses of the Messages door: answers, streams, errors, and tokens counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import orjson
import pytest

from adapters.errors import from_words
from adapters.protocol import Adapter, Finish, Json, Opened, TextDelta, Upstream, Usage
from tests.server.app.playing import play
from tests.support.adapters import repeating
from tests.support.day_one import running
from tests.support.door import Heard, door
from tests.support.served import KEY, gateway
from tests.support.upstreams.loopback import Peer, loopback

PATH = "/v1/messages"
COUNT = f"{PATH}/count_tokens"
HELLO: Json = {"messages": [{"role": "user", "content": "foo"}]}
ANSWER = (Opened((), Upstream("up")), TextDelta("hello"), Finish("stop", Usage(3, 2)))


def ask(adapter: Adapter, path: str = PATH, **body: Any) -> Heard:
    async def script() -> Heard:
        return await door(adapter).ask({"model": "m", **HELLO, **body}, path=path)

    heard: Heard = play(script)
    return heard


def test_an_answer_has_a_request_id_of_anthropics_kind() -> None:
    heard = ask(repeating(*ANSWER), f"{PATH}?beta=true", max_tokens=10)
    assert heard.status == 200
    assert heard.json()["content"] == [{"type": "text", "text": "hello"}]
    assert heard.headers["request-id"] == heard.headers["x-request-id"]


def test_a_stream_has_named_events() -> None:
    heard = ask(repeating(*ANSWER), max_tokens=10, stream=True)
    names = [frame.split(b"\n")[0] for frame in heard.frames()]
    assert (names[0], names[-1]) == (b"event: message_start", b"event: message_stop")


@pytest.mark.parametrize(
    ("status", "told", "retried"), [(429, 429, None), (503, 529, None), (401, 502, "false")]
)
def test_an_error_is_told_in_anthropics_words(status: int, told: int, retried: str | None) -> None:
    heard = ask(repeating(from_words(status, "no", "up")), max_tokens=10)
    assert heard.status == told
    assert heard.json()["type"] == "error"
    assert heard.json()["request_id"] == heard.headers["request-id"]
    assert heard.headers.get("x-should-retry") == retried


def test_tokens_are_estimated_and_never_too_few() -> None:
    tool = {"name": "f", "input_schema": {"type": "object"}}
    bodies: list[Json] = [
        {"tools": []},
        {"messages": [{"role": "user", "content": "foo " * 100}]},
        {"messages": [{"role": "user", "content": "foo " * 100}], "system": "long " * 20},
        {"messages": [{"role": "user", "content": "foo " * 100}], "tools": [tool]},
    ]
    heard = [ask(repeating(*ANSWER), COUNT, **body) for body in bodies]
    found = [one.json()["input_tokens"] for one in heard]
    assert found == sorted(found)
    assert 1 <= found[0] < 100 < found[1]
    assert heard[0].headers["x-usetool-warnings"] == "usage_estimated"
    assert ask(repeating(*ANSWER), COUNT, tools="x").status == 400


COUNTS = """
[upstreams.up]
kind = "claude"
base_url = "{url}"
api_key = "k"
[models.m]
upstream = "up"
name = "claude-sonnet-4-5"
"""


@pytest.mark.parametrize(
    ("status", "answer", "told"), [("200 OK", b'{"input_tokens": 42}', 42), ("500 No", b"no", 4)]
)
def test_an_upstream_that_counts_is_asked(status: str, answer: bytes, told: int) -> None:
    asked: list[tuple[str, Json]] = []

    async def behave(peer: Peer) -> None:
        head, body = await peer.request()
        asked.append((head.split(" ")[1], orjson.loads(body)))
        await peer.answer(answer, status=status)

    async def script() -> Any:
        async with (
            loopback(behave) as upstream,
            gateway(COUNTS.format(url=upstream.url)) as base_url,
            aiohttp.ClientSession(headers={"x-api-key": KEY}) as client,
        ):
            url = base_url.removesuffix("/v1") + COUNT
            async with client.post(url, json={"model": "m", **HELLO, "tools": []}) as heard:
                return await heard.json()

    assert play(script) == {"input_tokens": told}
    sent = {"model": "claude-sonnet-4-5", **HELLO, "tools": []}
    assert asked == [("/v1/messages/count_tokens", sent)]


ABSENT = """
[upstreams.up]
kind = "claude"
api_key = "env:NOT_SET"
[models.m]
upstream = "up"
name = "claude-sonnet-4-5"
[models.any]
choices = ["m"]
[models.thinks]
pipeline = "reason-then-answer"
reasoner = "m"
answerer = "m"
"""


@pytest.mark.parametrize("model", ["m", "any", "thinks"])
def test_tokens_of_a_model_that_is_not_available_are_estimated(model: str) -> None:
    async def script() -> tuple[int, Json]:
        async with running(ABSENT) as gateway:
            return await gateway.post(COUNT, {"model": model, **HELLO})

    assert play(script) == (200, {"input_tokens": 4})


@pytest.mark.parametrize("path", [f"{PATH}/batches", f"{PATH}/batches/b/cancel", "/v1/complete"])
def test_what_is_not_here_says_so(path: str) -> None:
    heard = ask(repeating(*ANSWER), path)
    assert (heard.status, heard.json()["error"]["type"]) == (404, "not_found_error")
    assert "POST /v1/messages" in heard.json()["error"]["message"]


TOLD = {"remaining-requests": "9", "reset-requests": "1m30s", "reset-tokens": "soon"}


@pytest.mark.parametrize("stream", [False, True])
def test_limits_have_anthropics_names(stream: bool) -> None:
    told = {f"x-ratelimit-{name}": value for name, value in TOLD.items()}
    opened = Opened((), Upstream("up", headers={**told, "x-upstream-request-id": "u"}))
    before = datetime.now(UTC)
    headers = ask(repeating(opened, *ANSWER[1:]), max_tokens=10, stream=stream).headers
    until = datetime.fromisoformat(headers["anthropic-ratelimit-requests-reset"])
    assert before + timedelta(seconds=90) <= until <= before + timedelta(seconds=120)
    assert headers["anthropic-ratelimit-requests-remaining"] == "9"
    assert headers["anthropic-ratelimit-tokens-reset"] == "soon"
    assert headers["x-upstream-request-id"] == "u"
    assert not any(name.startswith("x-ratelimit") for name in headers)
