"""The adapter as the gateway holds it: address, headers, body, stream."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import orjson
import pytest

from adapters.claude import KIND, Claude, connect
from adapters.errors import RateLimited
from adapters.protocol import ChatRequest, RequestContext
from adapters.wire.http import Link, Transport
from tests.support.fold import Answer, fold, run
from tests.support.upstreams.claude_wire import (
    HELLO,
    MANUAL,
    UNASKED,
    begin,
    end,
    message,
    sse,
    text,
)
from tests.support.upstreams.loopback import Peer, loopback

SAID = sse(begin(), *text(0, "你好"), *end())


@pytest.mark.parametrize(
    "address",
    [
        "https://api.anthropic.com",
        "https://api.anthropic.com/",
        "https://api.anthropic.com/v1",
        "https://api.anthropic.com/v1/",
    ],
)
def test_address_may_end_in_v1_or_not(address: str) -> None:
    adapter = connect(KIND.settings(Link("claude", address, Transport())))
    (planned,) = adapter.plan(ChatRequest(MANUAL, (HELLO,)))
    assert planned.url == "https://api.anthropic.com/v1/messages"
    assert planned.upstream == "claude"


def test_other_servers_keep_the_path_they_serve_it_under() -> None:
    adapter = connect(KIND.settings(Link("x", "https://x.example/anthropic", Transport())))
    (planned,) = adapter.plan(ChatRequest(MANUAL, (HELLO,)))
    assert planned.url == "https://x.example/anthropic/v1/messages"


@pytest.mark.parametrize(("version", "said"), [(None, "2023-06-01"), ("2026-10-21", "2026-10-21")])
def test_version_stands_in_the_headers_beside_the_key(version: str | None, said: str) -> None:
    link = Link("claude", "https://x.example", Transport(), {"x-api-key": "k"})
    adapter = connect(KIND.settings(link, version))
    assert isinstance(adapter, Claude)
    assert adapter.settings.link.headers == {"x-api-key": "k", "anthropic-version": said}
    assert link.headers == {"x-api-key": "k"}


async def ask(
    peer_says: bytes, asked: ChatRequest, status: str = "200 OK"
) -> tuple[str, bytes, Answer]:
    heard: list[tuple[str, bytes]] = []

    async def upstream(peer: Peer) -> None:
        heard.append(await peer.request())
        kind = "application/json" if peer_says.startswith(b"{") else "text/event-stream"
        await peer.answer(peer_says, f"content-type: {kind}", "request-id: req_9", status=status)

    async with loopback(upstream) as found:
        answer = await fold(connect(KIND.settings(found.link)).stream(asked))
    return (*heard[0], answer)


def test_plain_request_is_asked_and_answered_plainly() -> None:
    body = message({"type": "text", "text": "你好"})
    head, asked, answer = run(ask(body, ChatRequest(MANUAL, (HELLO,))))
    assert head.startswith("post /v1/messages http/1.1\r\n")
    assert "anthropic-version: 2023-06-01\r\n" in head
    assert "stream" not in orjson.loads(asked)
    assert (answer.text, answer.reason) == ("你好", "stop")
    assert answer.opened is not None
    assert answer.opened.upstream.request_id == "req_9"


@pytest.mark.parametrize(
    "asked",
    [
        ChatRequest(MANUAL, (HELLO,), call=RequestContext(streamed=True)),
        ChatRequest(MANUAL, (HELLO,), params={"max_tokens": 20_000}),
        ChatRequest(UNASKED, (HELLO,)),
    ],
)
def test_streams_and_long_plain_answers_are_asked_for_as_streams(asked: ChatRequest) -> None:
    _, body, answer = run(ask(SAID, asked))
    assert orjson.loads(body)["stream"] is True
    assert (answer.text, answer.reason) == ("你好", "stop")


def test_failure_before_the_answer_has_its_status() -> None:
    said = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    asked = ChatRequest(MANUAL, (HELLO,), call=RequestContext(streamed=True))
    *_, answer = run(ask(orjson.dumps(said), asked, "429 Too Many Requests"))
    assert isinstance(answer.error, RateLimited)
    assert answer.batches == []


def test_two_requests_at_once_do_not_meet() -> None:
    async def both() -> list[Answer]:
        asked = ChatRequest(MANUAL, (HELLO,), call=RequestContext(streamed=True))

        async def upstream(peer: Peer) -> None:
            _, body = await peer.request()
            name = orjson.loads(body)["model"]
            await peer.answer(sse(begin(), *text(0, name), *end()))

        async with loopback(upstream) as found:
            adapter = connect(KIND.settings(found.link))
            others = [replace(asked, model=f"claude-{n}") for n in range(5)]
            return await asyncio.gather(*(fold(adapter.stream(one)) for one in others))

    assert [answer.text for answer in run(both())] == [f"claude-{n}" for n in range(5)]
