"""The gateway on a loopback port, in front of upstreams that say what was recorded of them."""

from __future__ import annotations

import asyncio
import copy
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache

import orjson
import uvicorn

from adapters.protocol import Json
from middleware import config
from middleware.server.app import create
from middleware.server.transport.listening import Protocol
from tests.support.cases import CASES, REASONING
from tests.support.recordings import STREAMS, Interaction, Upstream, interactions, upstreams
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

KEY = "K"


@cache
def recorded(upstream: Upstream) -> Mapping[tuple[str, bytes], Interaction]:
    """What an upstream was asked → what it said."""
    return {
        (found.url.removeprefix(upstream.url), _canonical(found.asked)): found
        for case in upstream.cases
        for found in interactions(upstream.path(case))
    }


def _canonical(body: Json) -> bytes:
    return orjson.dumps(body, option=orjson.OPT_SORT_KEYS)


def ask_of(upstream: Upstream, case: str) -> Json:
    """The body by which a client of the gateway asks a recorded case."""
    thinks = case in REASONING
    special = upstream.reasoning.get("params", {}) if thinks else {}
    asked = copy.deepcopy({**CASES[case], **special})
    prompt = asked["messages"][0]
    prompt["content"] = prompt["content"].replace("{overload}", str(upstream.overload))
    return {"model": f"{upstream.name}{'-reasoning' * thinks}", **asked}


def says_what_it_said(upstream: Upstream) -> Behaviour:
    """Answer each request as it was answered once, a stream frame by frame; one that was never
    made is a 500.
    """

    async def behave(peer: Peer) -> None:
        while True:
            head, body = await peer.request()
            asked = (head.split(" ")[1], _canonical(orjson.loads(body or b"null")))
            found = recorded(upstream).get(asked)
            if found is None:
                words = orjson.dumps({"error": f"never asked: {asked}"})
                await peer.answer(words, status="500 Never Asked")
                continue
            headers = [f"{name}: {value}" for name, value in found.headers.items()]
            status = f"{found.status} As Recorded"
            kind = found.headers["content-type"].partition(";")[0]
            if kind not in STREAMS:
                await peer.answer(found.body, *headers, status=status)
                continue
            await peer.start(*headers, status=status)
            mark = STREAMS[kind][1].encode()
            *frames, rest = found.body.split(mark)
            for piece in (*(frame + mark for frame in frames), *([rest] if rest else ()), b""):
                await peer.chunk(piece)

    return behave


def cut_after(upstream: Upstream, case: str, size: int) -> Behaviour:
    """Break off in the middle of a recorded stream."""

    async def behave(peer: Peer) -> None:
        await peer.request()
        found = interactions(upstream.path(case))[-1]
        await peer.start(f"content-type: {found.headers['content-type']}")
        await peer.chunk(found.body[:size])

    return behave


def stanza(upstream: Upstream, url: str) -> str:
    """Make an upstream's models known by its name, and the one that thinks by another.

    Without a price: what is played of them has none, and is compared to the byte.
    """
    thinker = upstream.reasoning.get("model", upstream.model)
    return f"""
[upstreams.{upstream.name}]
kind = "{upstream.name}"
base_url = "{url}"
api_key = "k"
auth = "{upstream.auth}"
[models.{upstream.name}]
upstream = "{upstream.name}"
name = "{upstream.model}"
price = {{}}
retry = 0
[models.{upstream.name}-reasoning]
upstream = "{upstream.name}"
name = "{thinker}"
price = {{}}
retry = 0
"""


class _Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, settings: uvicorn.Config) -> None:
        super().__init__(settings)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@asynccontextmanager
async def gateway(*stanzas: str) -> AsyncIterator[str]:
    """Serve a config; yields the base URL for clients."""
    text = "\n".join([f'[server]\nkeys = ["{KEY}"]\n[recall]\nstore = "off"\n', *stanzas])
    app = create(config.parse(text, environment={}))
    settings = uvicorn.Config(
        app, log_level="critical", http=Protocol, interface="asgi3", ws="none", lifespan="on"
    )
    server = _Server(settings)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        await server.ready.wait()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            await serving


@asynccontextmanager
async def served() -> AsyncIterator[str]:
    """Serve every recorded upstream behind one gateway."""
    async with _all(upstreams()) as stanzas, gateway(*stanzas) as url:
        yield url


@asynccontextmanager
async def _all(left: list[Upstream]) -> AsyncIterator[list[str]]:
    if not left:
        yield []
        return
    async with loopback(says_what_it_said(left[0])) as up, _all(left[1:]) as stanzas:
        yield [stanza(left[0], up.url), *stanzas]
