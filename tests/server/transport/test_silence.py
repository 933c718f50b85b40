"""Long silences behind a proxy that cuts silent connections: pings keep the stream, nothing else
changes. The times are those of nginx and of slow models, sixty times shorter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest
from openai import AsyncOpenAI

from tests.support.day_one import Json, running
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

SILENCE, READ_TIMEOUT, HEARTBEAT = 1.5, 1.0, 0.3
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
Wait = Callable[[Peer], Awaitable[Any]]


def sse(*events: Json) -> bytes:
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (one.get("type", "message").encode(), orjson.dumps(one))
        for one in events
    )


def chunk(delta: Json, reason: str | None = None) -> Json:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


async def quiet(_: Peer) -> None:
    await asyncio.sleep(SILENCE)


async def kept_alive(peer: Peer) -> None:
    """As DeepSeek does while a request is queued."""
    for _ in range(10):
        await peer.chunk(b": keep-alive\n\n")
        await asyncio.sleep(SILENCE / 10)


async def ollama(peer: Peer, wait: Wait, asked: list[str]) -> None:
    """Loads the model before it says anything, even its status."""
    while True:
        head, _ = await peer.request()
        path = head.split(" ")[1]
        asked.append(path)
        if path == "/api/show":
            await peer.answer(b'{"capabilities": ["tools"]}')
            continue
        await wait(peer)
        call = {"function": {"name": "get_weather", "arguments": {"city": "Shenyang"}}}
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
        await peer.start("content-type: application/x-ndjson")
        await peer.chunk(orjson.dumps({"model": "m", "message": message, "done": False}) + b"\n")
        last = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True}
        await peer.chunk(orjson.dumps({**last, "done_reason": "stop"}) + b"\n")
        await peer.chunk(b"")


async def deepseek(peer: Peer, wait: Wait, asked: list[str]) -> None:
    asked.append((await peer.request())[0].split(" ")[1])
    await peer.start("content-type: text/event-stream")
    await wait(peer)
    function = {"name": "get_weather", "arguments": '{"city":"Shenyang"}'}
    call = {"index": 0, "id": "c", "type": "function", "function": function}
    await peer.chunk(
        sse(chunk({"role": "assistant", "tool_calls": [call]}), chunk({}, "tool_calls"))
        + b"data: [DONE]\n\n"
    )
    await peer.chunk(b"")


async def claude(peer: Peer, wait: Wait, asked: list[str]) -> None:
    """Thinks in the middle of the arguments of a call."""
    asked.append((await peer.request())[0].split(" ")[1])
    await peer.start("content-type: text/event-stream")
    start = {"id": "msg_1", "role": "assistant", "model": "claude-sonnet-4-5", "content": []}
    block = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
    lumps = [
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": part},
        }
        for part in ('{"city":', '"Shenyang"}')
    ]
    await peer.chunk(
        sse(
            {"type": "message_start", "message": {**start, "usage": {"input_tokens": 9}}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            lumps[0],
        )
    )
    await wait(peer)
    delta = {"stop_reason": "tool_use"}
    await peer.chunk(
        sse(
            lumps[1],
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        )
    )
    await peer.chunk(b"")


Speaks = Callable[[Peer, Wait, list[str]], Awaitable[None]]
CASES: tuple[tuple[str, Speaks, Wait, str], ...] = (
    ("ollama", ollama, quiet, "/api/chat"),
    ("deepseek", deepseek, kept_alive, "/chat/completions"),
    ("claude", claude, quiet, "/v1/messages"),
)


def impatient(url: str) -> Behaviour:
    """A reverse proxy that cuts what is silent for `READ_TIMEOUT` seconds, as nginx does."""

    async def behave(peer: Peer) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)

        async def up() -> None:
            while data := await peer.reader.read(1 << 16):
                forth.write(data)

        sending = asyncio.create_task(up())
        try:
            with suppress(TimeoutError):
                while data := await asyncio.wait_for(back.read(1 << 16), READ_TIMEOUT):
                    await peer.send(data)
        finally:
            sending.cancel()
            forth.close()

    return behave


def config_of(kind: str, url: str, heartbeat: float) -> str:
    return (
        f"[server]\nheartbeat = {heartbeat}\n"
        f'[upstreams.up]\nkind = "{kind}"\nbase_url = "{url}"\napi_key = "k"\n'
        '[models.m]\nupstream = "up"\nname = "claude-sonnet-4-5"\n'
    )


@asynccontextmanager
async def front(kind: str, behave: Behaviour, heartbeat: float = HEARTBEAT) -> AsyncIterator[str]:
    async with (
        loopback(behave) as up,
        running(config_of(kind, up.url, heartbeat)) as gateway,
        loopback(impatient(gateway.url)) as proxy,
    ):
        yield proxy.url


def silent(speaks: Speaks, wait: Wait, asked: list[str]) -> Behaviour:
    async def behave(peer: Peer) -> None:
        await speaks(peer, wait, asked)

    return behave


@pytest.mark.parametrize(("kind", "speaks", "wait", "path"), CASES)
def test_a_silent_upstream_is_waited_for_with_pings_and_asked_once(
    kind: str, speaks: Speaks, wait: Wait, path: str
) -> None:
    async def run() -> None:
        asked: list[str] = []
        async with front(kind, silent(speaks, wait, asked)) as url:
            client = AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
            moved, gaps = time.monotonic(), []
            async with (
                client,
                client.chat.completions.with_streaming_response.create(
                    model="m",
                    messages=[{"role": "user", "content": "Weather in Shenyang?"}],
                    tools=[TOOL],
                    stream=True,
                ) as answer,
            ):
                assert answer.headers["x-accel-buffering"] == "no"
                raw = b""
                async for piece in answer.iter_bytes():
                    gaps.append(time.monotonic() - moved)
                    moved, raw = time.monotonic(), raw + piece
            assert max(gaps) < READ_TIMEOUT
            frames = raw.decode().split("\n\n")
            pings = [frame for frame in frames if frame == ": ping"]
            assert len(pings) >= SILENCE / HEARTBEAT - 2
            assert all(
                frame.startswith("data: ") for frame in frames if frame not in (": ping", "")
            )
            assert raw.endswith(b"data: [DONE]\n\n")
            assert asked.count(path) == 1

    asyncio.run(run())


@pytest.mark.parametrize(("kind", "speaks", "wait", "path"), CASES)
def test_a_client_sees_nothing_odd_of_the_silence(
    kind: str, speaks: Speaks, wait: Wait, path: str
) -> None:
    async def run() -> None:
        async with (
            front(kind, silent(speaks, wait, [])) as url,
            AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
        ):
            stream = await client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": "Weather in Shenyang?"}],
                tools=[TOOL],
                stream=True,
            )
            arguments, reasons = "", []
            async for part in stream:
                for call in part.choices[0].delta.tool_calls or ():
                    assert call.function is not None
                    arguments += call.function.arguments or ""
                reasons.append(part.choices[0].finish_reason)
            assert arguments == '{"city":"Shenyang"}'
            assert reasons[-1] == "tool_calls"

    asyncio.run(run())


def test_without_pings_the_proxy_would_have_cut() -> None:
    async def run() -> None:
        async with front("ollama", silent(ollama, quiet, []), 60) as url:
            client = AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
            with pytest.raises(Exception, match=r"Connection error|Server disconnected"):
                await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "hi"}], stream=True
                )
            await client.close()

    asyncio.run(run())
