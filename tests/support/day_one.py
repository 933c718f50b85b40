"""A gateway of any config on a loopback port, and upstreams a stranger has on the first day."""

from __future__ import annotations

import asyncio
import io
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
import uvicorn

from middleware import config
from middleware.server.app import Gateway, create
from middleware.server.transport.listening import Protocol
from tests.support.upstreams.loopback import Behaviour, Peer

Json = dict[str, Any]


class _Server(uvicorn.Server):
    def __init__(self, settings: uvicorn.Config) -> None:
        super().__init__(settings)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@dataclass
class Running:
    """A gateway that serves."""

    url: str
    app: Gateway
    log: io.StringIO
    session: aiohttp.ClientSession

    async def get(self, path: str, key: str = "", **headers: str) -> tuple[int, Any]:
        return await self._ask("GET", path, None, key, headers)

    async def post(self, path: str, body: Json, key: str = "", **headers: str) -> tuple[int, Any]:
        return await self._ask("POST", path, orjson.dumps(body), key, headers)

    async def chat(self, body: Json, key: str = "") -> tuple[int, Any]:
        return await self.post("/v1/chat/completions", body, key)

    async def _ask(
        self, method: str, path: str, body: bytes | None, key: str, headers: Mapping[str, str]
    ) -> tuple[int, Any]:
        sent = {"authorization": f"Bearer {key}"} if key else {}
        async with self.session.request(
            method, self.url + path, data=body, headers={**sent, **headers}
        ) as answer:
            return answer.status, orjson.loads(await answer.read() or b"null")


@asynccontextmanager
async def running(
    text: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Running]:
    text = f'[recall]\nstore = "off"\n{text}'
    log = io.StringIO()
    app = create(config.parse(text, environment=environment or {}), log)
    server = _Server(
        uvicorn.Config(
            app, log_level="critical", http=Protocol, interface="asgi3", ws="none", lifespan="on"
        )
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        await server.ready.wait()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            async with aiohttp.ClientSession() as session:
                yield Running(url, app, log, session)
        finally:
            server.should_exit = True
            await serving


@dataclass
class Seen:
    """What an upstream was asked: path, head and body of each request."""

    requests: list[tuple[str, str, Json]] = field(default_factory=list)

    def bodies(self, path: str) -> list[Json]:
        return [body for asked, _, body in self.requests if asked == path]


Reply = tuple[str, bytes]
"""A status line's end and a JSON body."""


def answering(seen: Seen, reply: Callable[[str, str, Json], Reply]) -> Behaviour:
    """An upstream that answers every request plainly."""

    async def behave(peer: Peer) -> None:
        while True:
            head, raw = await peer.request()
            path = head.split(" ")[1]
            body = orjson.loads(raw) if raw else {}
            seen.requests.append((path, head, body))
            status, said = reply(path, head, body)
            await peer.answer(said, "content-type: application/json", status=status)

    return behave


def completion(text: str = "ok") -> bytes:
    """What a compatible server says."""
    return orjson.dumps(
        {
            "id": "c1",
            "object": "chat.completion",
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
        }
    )


def failure(words: str) -> bytes:
    return orjson.dumps({"error": {"message": words, "type": "invalid_request_error"}})
