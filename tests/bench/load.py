"""Asks a server one of the scripts many times, and what that costs the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import NamedTuple

import orjson

SCRIPTS = ("plain", "stream", "tools")
REQUESTS, CONNECTIONS = 160, 16
_LATER = 0.2
"""Seconds in which threads write what requests left them: recorders gather for 20 ms and 150."""
_TOOL = {
    "type": "function",
    "function": {
        "name": "web_search",
        "description": "Search the web.",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    },
}


class Server(NamedTuple):
    """One that listens."""

    port: int
    process: int
    prefix: str = ""
    """Of its paths."""


async def load(server: Server, script: str, each: int = REQUESTS // CONNECTIONS) -> float:
    """CPU microseconds that a small request costs the server."""
    return await load_with(server, [_small_body(script)], each)


async def load_with(server: Server, bodies: Sequence[bytes], each: int) -> float:
    """The same of several bodies in turn."""
    requests = cycle([_request(server, body) for body in bodies])
    before = _cpu_seconds(server.process)
    asked = ([next(requests) for _ in range(each)] for _ in range(CONNECTIONS))
    await asyncio.gather(*(_ask(server.port, one) for one in asked))
    await asyncio.sleep(_LATER)
    return (_cpu_seconds(server.process) - before) / (each * CONNECTIONS) * 1e6


async def grow(
    server: Server, body: Callable[[int, int], bytes], measured: Sequence[range]
) -> Sequence[float]:
    """What a request costs in each of some ranges of turns, where every connection has a
    conversation of its own; `body` is that of a conversation at a turn.
    """
    cost = [0.0 for _ in measured]
    for turn in range(1, measured[-1].stop):
        requests = [_request(server, body(number, turn)) for number in range(CONNECTIONS)]
        before = _cpu_seconds(server.process)
        await asyncio.gather(*(_ask(server.port, [request]) for request in requests))
        spent = _cpu_seconds(server.process) - before
        for at, turns in enumerate(measured):
            if turn in turns:
                cost[at] += spent / (CONNECTIONS * len(turns)) * 1e6
    return cost


async def _ask(port: int, requests: Sequence[bytes]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in requests:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head[:20]:
            raise RuntimeError((head + await reader.read(500)).decode())
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        await (reader.readexactly(int(length)) if length else reader.readuntil(b"\r\n0\r\n\r\n"))
    writer.close()


def _small_body(script: str) -> bytes:
    body = {
        "model": "bench",
        "max_tokens": 1024,
        "tools": [_TOOL],
        "messages": [
            {"role": "system", "content": f"You are careful. [{script}]"},
            {"role": "user", "content": "Which city hosts the largest book fair?"},
        ],
    }
    if script != "plain":
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return orjson.dumps(body)


def _request(server: Server, body: bytes) -> bytes:
    lines = (
        f"POST {server.prefix}/v1/chat/completions HTTP/1.1",
        f"host: 127.0.0.1:{server.port}",
        "content-type: application/json",
        f"content-length: {len(body)}",
    )
    return "\r\n".join((*lines, "", "")).encode() + body


def _cpu_seconds(process: int) -> float:
    # The process's own CPU clock: see clock_getcpuclockid(3).
    return time.clock_gettime(~process << 3 | 2)
