"""Bytes in, bytes out: what an asyncio gateway costs that does not read what it passes on."""

from __future__ import annotations

import os

import aiohttp
from starlette.types import Receive, Scope, Send

_SESSIONS: tuple[aiohttp.ClientSession, ...] = ()


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    async with _session().post(os.environ["UPSTREAM"], data=body) as answer:
        kind = answer.headers["content-type"].encode()
        await send(
            {
                "type": "http.response.start",
                "status": answer.status,
                "headers": [(b"content-type", kind)],
            }
        )
        async for piece in answer.content.iter_any():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _session() -> aiohttp.ClientSession:
    global _SESSIONS  # noqa: PLW0603  # one per process, made inside the loop
    if not _SESSIONS:
        _SESSIONS = (aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)),)
    return _SESSIONS[0]
