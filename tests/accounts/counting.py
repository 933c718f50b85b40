"""A gateway that counts, and requests as they are at their end."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable
from pathlib import Path

from adapters.protocol import Finish, Journey, Opened, Upstream, UpstreamCall, Usage
from middleware import config
from middleware.config import Config
from middleware.server.app import create
from middleware.server.visits import Visit
from tests.support.door import Door

KEY = ("authorization", "Bearer A")
MODELS = """
[upstreams.script]
kind = "scripted"
[models.demo]
upstream = "script"
price = { input = 1.0, output = 3.0 }
[models.other]
upstream = "script"
[models."many/*"]
upstream = "script"
name = "*"
"""
OPENED = Opened((), Upstream("up", "model"))


def parsed(text: str) -> Config:
    return config.parse(f'[recall]\nstore = "off"\n{text}', environment={})


def counting(client: str = "", more: str = "", ledger: Path | None = None) -> Door:
    """The client `alpha`, whose key is A, is what a test says; `beta` has the key B."""
    kept = f'[ledger]\nurl = "sqlite:///{ledger}"\n' if ledger else ""
    text = f'{kept}{more}{MODELS}[clients.alpha]\nkey = "A"\n{client}\n[clients.beta]\nkey = "B"\n'
    log = io.StringIO()
    return Door(create(parsed(text), log), log)


def called(
    place: str = "demo", usage: Usage | None = None, *, open_end: bool = False
) -> UpstreamCall:
    """A call that was answered; with `open_end` it is at work."""
    call = UpstreamCall(place, "up", "model", 1.0, opened=OPENED)
    if not open_end:
        call.outcome, call.finish, call.ended = "ok", Finish("stop", usage), 2.0
    return call


def visit(*calls: UpstreamCall, name: str = "req_1") -> Visit:
    found = Visit(name, 1.0, model="demo", status=200, client="alpha", counted=True)
    found.journey = Journey([*calls])
    return found


async def until(true: Callable[[], object], seconds: float = 10.0) -> None:
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends
        await asyncio.sleep(0.01)
