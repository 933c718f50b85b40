"""What a start does without, and what is loaded when it is first asked."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message
from uvicorn.lifespan.on import LifespanOn

from middleware import config
from middleware.server.app import create
from middleware.server.transport.late import LateApp
from tests.support.door import Door, door
from tests.support.paths import ROOT
from tests.support.upstreams.loopback import Peer, loopback

COLD = ("/healthz", "/readyz", "/v1/models", "/api/tags", "/nowhere")
NOT_NEEDED = {
    *("fastapi", "pydantic.v1", "opentelemetry", "prometheus_client", "yaml", "mcp", "redis"),
    *("sqlalchemy", "starlette.routing", "middleware.cli.live_check", "middleware.cassettes.file"),
    *("middleware.cassettes.studio", "middleware.server.api.app", "middleware.tools.shelf"),
    *("middleware.wrappers.emulation.automatic", "middleware.wrappers.emulation.emulated"),
    *("aiohttp", "middleware.wrappers.pipeline", "middleware.wrappers.server_tools"),
}
CLAUDE = """
[recall]
store = "memory"
[upstreams.claude]
kind = "claude"
base_url = "URL"
api_key = "k"
[models.m]
upstream = "claude"
name = "claude-sonnet-4-5"
"""
ANSWER = (
    b'{"id":"msg_1","type":"message","role":"assistant","model":"c","stop_reason":"end_turn",'
    b'"content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":1,"output_tokens":1}}'
)
SERVED = f"""
import asyncio, sys
from middleware.server.transport import serving
from tests.server.transport.test_late import chat_with_claude
asyncio.run(chat_with_claude())
print(*sorted({NOT_NEEDED!r} & sys.modules.keys()))
"""


async def chat_with_claude() -> None:
    """One chat through all that is served."""

    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.answer(ANSWER)

    async with loopback(behave) as upstream:
        text = CLAUDE.replace("URL", upstream.link.base_url)
        app = create(config.parse(text, environment={}), io.StringIO())
        heard = await Door(app, io.StringIO()).chat()
        assert heard.status == 200, heard.body


def test_a_chat_loads_nothing_that_other_configs_and_addresses_need() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SERVED], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "\n"), ran.stdout + ran.stderr


def test_addresses_beside_the_doors_answer_when_all_are_asked_at_first() -> None:
    async def script() -> list[int]:
        here = door()
        asked = [here.ask(method="GET", path=path) for path in COLD for _ in range(3)]
        return [heard.status for heard in await asyncio.gather(*asked)]

    assert asyncio.run(script()) == [200] * 3 * (len(COLD) - 1) + [404] * 3


@dataclass
class Loading:
    """Loads when it is let, and fails as often as it is told."""

    fails: int = 0
    begins: Callable[[], object] = bool
    may: threading.Event = field(default_factory=threading.Event)
    times: int = 0

    def load(self) -> ASGIApp:
        self.times += 1
        self.begins()
        assert self.may.wait(10)
        if self.times <= self.fails:
            raise ImportError("not there")
        return PlainTextResponse("here")


@asynccontextmanager
async def nothing() -> AsyncIterator[None]:
    yield


def asked(app: LateApp) -> asyncio.Task[None]:
    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: Message) -> None:
        pass

    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    return asyncio.create_task(app(scope, receive, send))


def test_an_app_is_loaded_once_and_nothing_else_waits_for_it() -> None:
    async def script() -> int:
        loop, begun = asyncio.get_running_loop(), asyncio.Event()
        loading = Loading(begins=lambda: loop.call_soon_threadsafe(begun.set))
        app = LateApp(loading.load, nothing)
        asks = [asked(app) for _ in range(5)]
        await begun.wait()
        assert not any(one.done() for one in asks)
        loading.may.set()
        await asyncio.gather(*asks)
        return loading.times

    assert asyncio.run(asyncio.wait_for(script(), 20)) == 1


def test_an_app_that_could_not_be_loaded_is_loaded_again() -> None:
    async def script() -> None:
        loading = Loading(fails=1)
        loading.may.set()
        app = LateApp(loading.load, nothing)
        with pytest.raises(ImportError):
            await asked(app)
        await asked(app)

    asyncio.run(asyncio.wait_for(script(), 20))


def test_a_server_whose_life_cannot_begin_ends() -> None:
    @asynccontextmanager
    async def failing() -> AsyncIterator[None]:
        (Path("/nowhere") / "ledger").touch()
        yield

    app = LateApp(Loading().load, failing)
    said = uvicorn.Config(app, lifespan="on", log_level="critical")
    life = LifespanOn(said)

    async def script() -> bool:
        await life.startup()
        return life.should_exit

    assert asyncio.run(asyncio.wait_for(script(), 20))
