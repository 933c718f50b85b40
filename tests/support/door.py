"""The app with models that say what a test wants, asked without a network."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from starlette.types import Message

from adapters.protocol import (
    Adapter,
    Event,
    Finish,
    Json,
    Opened,
    TextDelta,
    Upstream,
    Usage,
)
from middleware import config
from middleware.routing import Routes
from middleware.server.app import Gateway, create
from middleware.server.signposts import CHAT
from middleware.server.transport.responses import CONNECTION, PIECES
from middleware.wrappers.route import Route
from tests.support.adapters import PATIENCE

USER: Json = {"role": "user", "content": "hi"}
DEMO = """
[recall]
store = "off"
[upstreams.script]
kind = "scripted"
[models.demo]
upstream = "script"
"""
OPENED = Opened((), Upstream("up"))
TEXT = TextDelta("hello")
END = Finish("stop", Usage(1, 2))
ANSWER: tuple[Event, ...] = (OPENED, TEXT, END)


@dataclass
class Heard:
    """What a client got."""

    sent: list[Message] = field(default_factory=list)
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])

    @property
    def complete(self) -> bool:
        return len(self.sent) > 1 and not self.sent[-1].get("more_body")

    def json(self) -> Any:
        return orjson.loads(self.body)

    def error(self) -> Json:
        """The error object, whose members are OpenAI's and name no internals."""
        assert self.complete
        error: Json = self.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert error["message"]
        assert "Traceback" not in error["message"]
        assert self.headers["content-type"] == "application/json"
        return error

    def frames(self) -> list[bytes]:
        assert self.headers["content-type"] == "text/event-stream; charset=utf-8"
        return self.body.split(b"\n\n")[:-1]

    async def until(self, count: int) -> None:
        """Wait for so many messages."""
        async with asyncio.timeout(PATIENCE):
            while len(self.sent) < count:
                self.moved.clear()
                await self.moved.wait()


class Leaving:
    """A client's connection, which it may close."""

    def __init__(self, heard: Heard, leaves: asyncio.Event) -> None:
        self._heard, self._leaves = heard, leaves
        self.loop = asyncio.get_running_loop()
        self._waiting: asyncio.Task[None] | None = None

    def watch(self, when_left: Callable[[], None]) -> None:
        self._waiting = asyncio.create_task(self._wait(when_left))

    async def _wait(self, when_left: Callable[[], None]) -> None:
        await self._leaves.wait()
        if not self._heard.complete:
            when_left()

    def gather(self) -> None: ...

    def cut(self) -> None:
        self._leaves.set()


def _apart(message: Message) -> list[Message]:
    """Several pieces as the connection makes chunks of them."""
    if message["type"] != PIECES:
        return [dict(message)]
    more = {"type": "http.response.body", "more_body": True}
    return [{**more, "body": piece} for piece in message["pieces"]]


@dataclass
class Door:
    app: Gateway
    log: io.StringIO

    def begin(
        self,
        body: bytes | Json,
        leaves: asyncio.Event | None = None,
        headers: Sequence[tuple[str, str]] = (),
        method: str = "POST",
        path: str = CHAT,
    ) -> tuple[Heard, asyncio.Task[None]]:
        """Send a request; the client goes away when `leaves` is set."""
        path, _, query = path.partition("?")
        heard, over = Heard(), leaves or asyncio.Event()
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        pieces: list[Message] = [{"type": "http.request", "body": data, "more_body": False}]

        async def receive() -> Message:
            if pieces:
                return pieces.pop()
            await over.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            heard.sent += _apart(message)
            heard.moved.set()
            if heard.complete:  # which servers report as a disconnect too
                over.set()

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "scheme": "http",
            "http_version": "1.1",
            "server": ("127.0.0.1", 8000),
            "client": ("127.0.0.1", 5000),
            "headers": [(name.encode(), value.encode()) for name, value in headers],
            CONNECTION: Leaving(heard, over),
        }
        return heard, asyncio.create_task(self.app(scope, receive, send))

    async def ask(self, body: bytes | Json = b"", **how: Any) -> Heard:
        heard, task = self.begin(body, **how)
        await asyncio.wait_for(task, PATIENCE)
        return heard

    async def chat(self, model: str = "m", **fields: Any) -> Heard:
        return await self.ask(chat(model, **fields))

    def lines(self) -> list[Json]:
        self.app.chat.log.flush()
        return [orjson.loads(line) for line in self.log.getvalue().splitlines()]


def chat(model: str = "m", **fields: Any) -> Json:
    return {"model": model, "messages": [USER], **fields}


def door(models: Mapping[str, Adapter] | Adapter | None = None, server: str = "") -> Door:
    """An app with these models, or with one that is called `m`."""
    log = io.StringIO()
    text = f"[server]\n{server}\n{DEMO}"
    app = create(config.parse(text, environment={}), log)
    if models is not None:
        named = models if isinstance(models, Mapping) else {"m": models}
        routes = Routes({name: Route(adapter, name) for name, adapter in named.items()}, ())
        app.use(replace(app.chat.runtime, routes=routes))
    return Door(app, log)
