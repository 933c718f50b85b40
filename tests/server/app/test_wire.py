"""The app under the real server: connections that close, bodies that are too large, a shutdown."""

from __future__ import annotations

import asyncio
import io
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import pytest
import uvicorn

from adapters.protocol import Adapter, ChatRequest, TextDelta
from middleware import config
from middleware.routing import Routes
from middleware.server.app import Gateway, create
from middleware.server.signposts import CHAT
from middleware.server.transport.serving import settings
from middleware.wrappers.route import Route
from tests.server.app.playing import play
from tests.support.adapters import FakeAdapter, Step, Wait, repeating
from tests.support.door import ANSWER, DEMO, OPENED, TEXT, chat
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

SOON = 2.0
CHUNK = b'data: {"model":"x","choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n'


class _Server(uvicorn.Server):
    def __init__(self, app: Gateway, grace: int) -> None:
        how = settings(app, "critical")
        how.timeout_graceful_shutdown = grace
        super().__init__(how)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@dataclass
class Served:
    port: int
    app: Gateway
    server: uvicorn.Server
    done: asyncio.Task[None]
    clients: list[Connection] = field(default_factory=list)

    async def connect(self) -> Connection:
        client = Connection(*await asyncio.open_connection("127.0.0.1", self.port))
        self.clients.append(client)
        return client


@dataclass
class Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def post(self, body: bytes, *headers: str, length: int | None = None) -> None:
        size = len(body) if length is None else length
        lines = [
            f"POST {CHAT} HTTP/1.1",
            "host: 127.0.0.1",
            f"content-length: {size}",
            *headers,
            "",
            "",
        ]
        self.writer.write("\r\n".join(lines).encode() + body)

    async def head(self) -> tuple[int, dict[str, str]]:
        text = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = text.strip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        return int(first.split(" ")[1]), headers

    async def answer(self) -> tuple[int, Any]:
        status, headers = await self.head()
        return status, orjson.loads(await self.reader.readexactly(int(headers["content-length"])))

    def leave(self) -> None:
        self.writer.transport.abort()


@asynccontextmanager
async def serving(text: str = DEMO, grace: int = 1, **models: Adapter) -> AsyncIterator[Served]:
    app = create(config.parse(text, environment={}), io.StringIO())
    if models:
        routes = Routes({name: Route(model, name) for name, model in models.items()}, ())
        app.use(replace(app.chat.runtime, routes=routes))
    server = _Server(app, grace)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        done = asyncio.create_task(server.serve(sockets=[listening]))
        await server.ready.wait()
        served = Served(listening.getsockname()[1], app, server, done)
        try:
            yield served
        finally:
            for client in served.clients:
                client.leave()
            server.should_exit = True
            await done


# Clients that leave ----------------------------------------------------------------------------


def behaves(*steps: bytes) -> Behaviour:
    """An upstream that sends this much and then watches whether somebody still listens."""

    async def behave(peer: Peer) -> None:
        await peer.request()
        if steps:
            await peer.start("content-type: text/event-stream")
        for step in steps:
            if step:
                await peer.chunk(step)
        await peer.left()

    return behave


def stanza(url: str) -> str:
    return (
        f'{DEMO}[upstreams.up]\nkind = "compatible"\nbase_url = "{url}"\napi_key = "k"\n'
        '[models.m]\nupstream = "up"\nname = "x"\n'
    )


MOMENTS: dict[str, tuple[bool, tuple[bytes, ...]]] = {
    "plain, before the headers": (False, ()),
    "plain, in the body": (False, (b'{"choices":',)),
    "streamed, before the headers": (True, ()),
    "streamed, before the first event": (True, (b": ping\n\n",)),
    "streamed, in the middle": (True, (CHUNK,)),
}


@pytest.mark.parametrize(("stream", "steps"), MOMENTS.values(), ids=MOMENTS)
def test_a_client_that_closes_its_connection_cancels_the_upstreams(
    stream: bool, steps: tuple[bytes, ...]
) -> None:
    async def script() -> None:
        async with loopback(behaves(*steps)) as up, serving(stanza(up.url)) as served:
            client = await served.connect()
            client.post(orjson.dumps(chat(stream=stream)))
            if steps == (CHUNK,):
                await client.reader.readuntil(b"hello")
            else:
                await asyncio.sleep(0.1)
            assert up.connections == 1
            assert not up.gone.is_set()
            client.leave()
            await asyncio.wait_for(up.gone.wait(), SOON)

    play(script)


class Endless(FakeAdapter):
    """Goes on as long as somebody takes it."""

    def __init__(self) -> None:
        super().__init__(usual=self.go_on)
        self.pieces = 0

    def go_on(self, _: ChatRequest) -> Iterator[Step]:
        yield (OPENED, TEXT)
        while True:
            self.pieces += 1
            yield TextDelta("x" * 65536)
            yield 0.0


def test_a_client_that_does_not_read_holds_the_upstream_back() -> None:
    async def script() -> None:
        model = Endless()
        async with serving(m=model) as served:
            client = await served.connect()
            client.post(orjson.dumps(chat(stream=True)))
            before = -1
            async with asyncio.timeout(10):
                while model.pieces != before:
                    before = model.pieces
                    await asyncio.sleep(0.1)
            # What the buffers of two sockets hold, and not the gateway's memory.
            assert 0 < model.pieces < 500
            client.leave()

    play(script)


def test_a_client_that_does_not_read_is_left_and_its_place_is_free() -> None:
    async def script() -> None:
        text = f"{DEMO}[defaults.timeouts]\nidle = 0.2\n[server]\nmax_concurrent = 1\n"
        model = Endless()
        async with serving(text, m=model) as served:
            client = await served.connect()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # as sockets have it
            client.post(orjson.dumps(chat(stream=True)))
            await asyncio.wait_for(model.left.wait(), 5)
            another = await served.connect()
            another.post(orjson.dumps(chat("demo")))
            assert (await another.answer())[0] == 404  # the only model is `m`

    play(script)


# A server that stops ---------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
def test_a_server_that_stops_ends_what_is_under_way_with_an_error(stream: bool) -> None:
    async def script() -> None:
        wait = Wait()
        model = repeating((OPENED, TEXT), wait)
        async with serving(grace=0, m=model) as served:
            client = await served.connect()
            client.post(orjson.dumps(chat(stream=stream)))
            await wait.until_reached()
            served.server.should_exit = True
            heard = await asyncio.wait_for(client.reader.read(), 5)
            assert b"shutting down. Send the request again." in heard
            assert b"[DONE]" not in heard
            assert b"finish_reason" not in heard.rpartition(b"data: ")[2]
            assert heard.startswith(b"HTTP/1.1 200" if stream else b"HTTP/1.1 503")
            assert model.left.is_set()
            await served.done

    play(script)


def test_a_server_that_stops_keeps_no_connection() -> None:
    async def script() -> None:
        async with serving(m=FakeAdapter(ANSWER, [wait := Wait(), *ANSWER])) as served:
            idle, busy = [await served.connect() for _ in range(2)]
            for client in (idle, busy):
                client.post(orjson.dumps(chat()))
                await (client.answer() if client is idle else wait.until_reached())
            served.server.should_exit = True
            assert await asyncio.wait_for(idle.reader.read(), 5) == b""
            wait.over.set()
            assert (await busy.head())[1]["connection"] == "close"

    play(script)


# Bodies ----------------------------------------------------------------------------------------

SMALL = f"[server]\nmax_body = 1000\n{DEMO}"


def test_a_body_that_is_too_large_is_answered_when_it_has_been_sent() -> None:
    async def script() -> None:
        async with serving(SMALL) as served:
            client = await served.connect()
            client.post(b"x" * 3_000_000, "connection: close")
            await client.writer.drain()
            status, said = await client.answer()
            assert (status, said["error"]["code"]) == (413, "request_too_large")

    play(script)


def test_a_chunked_body_that_is_too_large_is_answered_at_once() -> None:
    async def script() -> None:
        async with serving(SMALL) as served:
            client = await served.connect()
            head = f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n"
            client.writer.write(head.encode() + b"7d0\r\n" + b"x" * 2000 + b"\r\n0\r\n\r\n")
            status, _ = await asyncio.wait_for(client.answer(), SOON)
            assert status == 413

    play(script)


def test_a_client_that_asks_before_it_sends_is_refused_before_it_sends() -> None:
    async def script() -> None:
        async with serving(SMALL) as served:
            client = await served.connect()
            client.post(b"", "expect: 100-continue", length=3_000_000)
            status, _ = await asyncio.wait_for(client.answer(), SOON)
            assert status == 413

    play(script)


def test_a_client_that_asks_before_it_sends_may_send() -> None:
    async def script() -> None:
        async with serving(SMALL, m=repeating(ANSWER)) as served:
            client = await served.connect()
            body = orjson.dumps(chat())
            client.post(b"", "expect: 100-continue", length=len(body))
            assert (await client.head())[0] == 100
            client.writer.write(body)
            assert (await client.answer())[0] == 200

    play(script)


def test_a_body_in_pieces_is_one_request() -> None:
    async def script() -> None:
        async with serving(m=repeating(ANSWER)) as served:
            client = await served.connect()
            body = orjson.dumps(chat())
            client.post(body[:10], length=len(body))
            for place in range(10, len(body), 10):
                await asyncio.sleep(0.001)
                client.writer.write(body[place : place + 10])
            assert (await client.answer())[0] == 200

    play(script)


# Connections -----------------------------------------------------------------------------------


def test_a_connection_carries_many_requests_of_every_kind() -> None:
    async def script() -> None:
        async with serving(m=repeating(ANSWER)) as served:
            client = await served.connect()
            for _ in range(3):
                client.post(orjson.dumps(chat(stream=True)))
                assert (await client.head())[0] == 200
                await client.reader.readuntil(b"data: [DONE]\n\n\r\n0\r\n\r\n")
                client.post(orjson.dumps(chat()))
                assert (await client.answer())[0] == 200
                client.post(b"{")
                assert (await client.answer())[0] == 400

    play(script)


def test_every_header_of_an_answer_can_be_sent() -> None:
    async def script() -> None:
        strange = {"a\r\nx-evil: 1": 1, "模型": 2, "\x7f": 3}
        body = {**chat("demo"), **strange}
        async with serving() as served:
            client = await served.connect()
            client.post(orjson.dumps(body))
            status, headers = await client.head()
            assert status == 200
            assert "x-evil" not in headers
            assert r"a\r\nx-evil: 1" in headers["x-usetool-warnings"]

    play(script)
