"""Asks a server one of the scripts many times, and what that costs the server."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

import orjson

SCRIPTS = ("plain", "stream", "tools")
REQUESTS, CONNECTIONS = 160, 16
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
    """CPU microseconds that a request costs the server."""
    request = _request(server, script)
    before = _cpu_seconds(server.process)
    await asyncio.gather(*(_ask(server.port, request, each) for _ in range(CONNECTIONS)))
    return (_cpu_seconds(server.process) - before) / (each * CONNECTIONS) * 1e6


async def _ask(port: int, request: bytes, times: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(times):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head[:20]:
            raise RuntimeError((head + await reader.read(500)).decode())
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        await (reader.readexactly(int(length)) if length else reader.readuntil(b"\r\n0\r\n\r\n"))
    writer.close()


def _request(server: Server, script: str) -> bytes:
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
    said = orjson.dumps(body)
    lines = (
        f"POST {server.prefix}/v1/chat/completions HTTP/1.1",
        f"host: 127.0.0.1:{server.port}",
        "content-type: application/json",
        f"content-length: {len(said)}",
    )
    return "\r\n".join((*lines, "", "")).encode() + said


def _cpu_seconds(process: int) -> float:
    # The process's own CPU clock: see clock_getcpuclockid(3).
    return time.clock_gettime(~process << 3 | 2)
