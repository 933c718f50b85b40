"""Apps and clients that talk below HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import orjson
import uvicorn
from starlette.types import Receive, Scope, Send

from adapters.protocol import Json
from middleware.server.transport.listening import Protocol

PATIENCE = 0.15
HEAD = b"POST / HTTP/1.1\r\nhost: a\r\n"
BODY = b"content-length: 5\r\n\r\n"
ONE = HEAD + BODY + b"12345"


def posted(asked: Json) -> bytes:
    body = orjson.dumps(asked)
    lines = (b"POST /v1/chat/completions HTTP/1.1", b"host: localhost", b"content-length: %d")
    return b"\r\n".join((*lines, b"", b"")) % len(body) + body


class Hasty(Protocol):
    seconds = PATIENCE


class Patient(Protocol):
    seconds = 60.0


async def echo(_: Scope, receive: Receive, send: Send) -> None:
    """Read the whole body, then say so."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        more = message["more_body"]
    await say(send, b"done")


async def say(send: Send, body: bytes, more: bool = False, begun: bool = False) -> None:
    if not begun:
        await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def stream_slowly(_: Scope, __: Receive, send: Send) -> None:
    await say(send, b"first", more=True)
    await asyncio.sleep(PATIENCE * 3)
    await say(send, b"last", begun=True)


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bytes]]


def talk(app: Any, protocol: type[Protocol], script: Talk) -> bytes:
    """Serve an app and talk to it on a raw connection; returns what the script heard."""

    async def scene() -> bytes:
        config = uvicorn.Config(app, log_level="critical", interface="asgi3", ws="none")
        config.load()
        server = uvicorn.Server(config)
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(
            lambda: protocol(config, server.server_state, {}), "127.0.0.1", 0
        )
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        try:
            async with asyncio.timeout(10):
                return await script(reader, writer)
        finally:
            writer.close()
            listening.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            await asyncio.gather(*server.server_state.tasks, return_exceptions=True)
            for _ in range(1000):
                if server.server_state.connections:  # it has not heard yet that we left
                    await asyncio.sleep(0.001)

    return asyncio.run(scene())


def sending(*pieces: bytes) -> Talk:
    """Send these, then listen until the server closes."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        return await reader.read()

    return script


def answers(heard: bytes) -> list[tuple[int, bytes]]:
    """Statuses and bodies on one connection."""
    found = []
    while heard:
        head, _, rest = heard.partition(b"\r\n\r\n")
        status = int(head.split(b" ")[1])
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        found.append((status, rest[:length]))
        heard = rest[length:]
    return found


def refusal(heard: bytes) -> tuple[int, str]:
    ((status, body),) = answers(heard)
    assert heard.startswith(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode())
    assert b"connection: close" in heard
    error = orjson.loads(body)["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_http")
    assert set(error) == {"message", "type", "param", "code"}
    return status, error["message"]
