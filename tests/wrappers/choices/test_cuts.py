"""A first place that breaks off at any byte: before its first word another answers; then none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import orjson
import pytest

from adapters.errors import GatewayError
from adapters.protocol import ChatRequest, Event, Finish, Journey, Json, RequestContext, TextDelta
from adapters.wire.http import Transport
from middleware import config
from middleware.building import build
from middleware.routing import Routes
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

TWO = """
[recall]
store = "memory"
[upstreams.one]
kind = "compatible"
base_url = "{one}"
[upstreams.two]
kind = "compatible"
base_url = "{two}"
[models.first]
upstream = "one"
fallback = ["second"]
[models.second]
upstream = "two"
"""


def frame(delta: Json, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return b"data: " + orjson.dumps({"id": "x", "model": "m", "choices": [choice]}) + b"\n\n"


OPENING = b": hello\n\n" + frame({"role": "assistant", "content": ""})
WORD = frame({"content": "one"})
STREAM = OPENING + WORD + frame({}, "stop") + b"data: [DONE]\n\n"
SECOND = frame({"content": "two"}) + frame({}, "stop") + b"data: [DONE]\n\n"
_SSE = "content-type: text/event-stream"


@asynccontextmanager
async def two_places(first: Behaviour) -> AsyncIterator[tuple[Routes, list[int]]]:
    """The routes, and how often the second place was asked."""
    asked = [0]

    async def second(peer: Peer) -> None:
        while True:
            await peer.request()
            asked[0] += 1
            await peer.answer(SECOND, _SSE)

    async with loopback(first) as one, loopback(second) as two:
        transport = Transport()
        text = TWO.format(one=one.url, two=two.url)
        try:
            yield build(config.parse(text, environment={}), transport), asked
        finally:
            await transport.close()


async def answer(routes: Routes) -> tuple[str, bool, list[str]]:
    """What is said, whether it ends properly, and the route."""
    journey = Journey()
    call = RequestContext(streamed=True, journey=journey)
    request = ChatRequest("first", ({"role": "user", "content": "hi"},), call=call)
    events: list[Event] = []
    try:
        async for batch in routes.find("first").stream(request):
            events += batch
    except GatewayError:
        pass
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return text, any(isinstance(event, Finish) for event in events), [*journey.summary().steps]


def cut_at(length: int, reset: bool) -> Behaviour:
    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.start(_SSE)
        if length:
            await peer.chunk(STREAM[:length])
        if reset:
            peer.reset()

    return behave


@pytest.mark.parametrize("reset", [False, True])
def test_a_stream_is_cut_at_any_byte(reset: bool) -> None:
    async def run() -> None:
        for length in range(0, len(STREAM) - 20, 5):
            async with two_places(cut_at(length, reset)) as (routes, second):
                text, ended, route = await answer(routes)
            if text == "one":
                assert second == [0], length
                assert route[0].startswith("first="), length
                assert len(route) == 1, length
            else:
                assert (text, ended, second) == ("two", True, [1]), length
                assert route[1:] == ["second=ok"], length
            # A reset may overtake what was sent before it, and nothing else is in doubt.
            assert length >= len(OPENING + WORD) or text == "two", length
            assert reset or length < len(OPENING + WORD) or text == "one", length

    asyncio.run(run())


async def _reset(peer: Peer) -> None:
    peer.reset()


HEADLESS: dict[str, Callable[[Peer], Awaitable[None]]] = {
    "reset": _reset,
    "garbage": lambda peer: peer.send(b"\x00\xffSSH-2.0\r\n\r\n"),
    "page": lambda peer: peer.answer(b"<html>sorry</html>", "content-type: text/html"),
    "empty": lambda peer: peer.answer(b"", _SSE),
    "error with 200": lambda peer: peer.answer(b'{"error": {"message": "oops"}}'),
    "error event": lambda peer: peer.answer(b'data: {"error": {"message": "oops"}}\n\n', _SSE),
    "redirect": lambda peer: peer.send(
        b"HTTP/1.1 307 .\r\nlocation: /\r\ncontent-length: 0\r\n\r\n"
    ),
    "not gzip": lambda peer: peer.answer(SECOND, _SSE, "content-encoding: gzip"),
    "another shape": lambda peer: peer.answer(b'data: {"choices": 7}\n\n', _SSE),
}


@pytest.mark.parametrize("fault", HEADLESS)
def test_what_is_no_answer_is_for_the_next_place(fault: str) -> None:
    async def behave(peer: Peer) -> None:
        await peer.request()
        await HEADLESS[fault](peer)

    async def run() -> None:
        async with two_places(behave) as (routes, second):
            text, ended, route = await answer(routes)
        assert (text, ended, second) == ("two", True, [1])
        assert route[-1] == "second=ok"

    asyncio.run(run())


def test_a_plain_answer_that_breaks_behind_its_headers_was_billed() -> None:
    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{")
        peer.writer.close()

    async def run() -> None:
        async with two_places(behave) as (routes, second):
            request = ChatRequest("first", ({"role": "user", "content": "hi"},))
            with pytest.raises(GatewayError):
                async for _ in routes.find("first").stream(request):
                    pass
            assert second == [0]

    asyncio.run(run())
