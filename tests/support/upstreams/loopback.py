"""A raw upstream on a loopback port, with whatever faults a test wants."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from adapters.wire.http import Link, Timeouts, Transport


@dataclass
class Peer:
    """One connection an upstream got."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    gone: asyncio.Event

    async def request(self) -> tuple[str, bytes]:
        """Read one request; its head and its body."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = 0
        if "content-length:" in head:
            size = int(head.split("content-length:")[1].split("\r\n")[0])
        return head, await self.reader.readexactly(size)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def start(self, *headers: str, status: str = "200 OK") -> None:
        """Begin a chunked answer."""
        lines = [f"HTTP/1.1 {status}", "transfer-encoding: chunked", *headers, "", ""]
        await self.send("\r\n".join(lines).encode())

    async def chunk(self, data: bytes) -> None:
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def answer(self, body: bytes, *headers: str, status: str = "200 OK") -> None:
        lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
        await self.send("\r\n".join(lines).encode() + body)

    async def left(self) -> None:
        """Wait until the other side has gone."""
        with suppress(ConnectionError):
            while await self.reader.read(1 << 16):
                pass
        self.gone.set()

    def reset(self) -> None:
        linger = struct.pack("ii", 1, 0)
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()


Behaviour = Callable[[Peer], Awaitable[Any]]


@dataclass
class Loopback:
    """The upstream as the test sees it."""

    url: str
    link: Link
    connections: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a peer saw that it was left."""


@asynccontextmanager
async def loopback(
    behave: Behaviour, tls: ssl.SSLContext | None = None, /, **timeouts: float
) -> AsyncIterator[Loopback]:
    """Serve each connection by `behave`, which reads requests and answers as it likes."""
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        upstream.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await behave(Peer(reader, writer, upstream.gone))
        writer.close()
        tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    url = f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    transport = Transport()
    link = Link("up", url, transport, timeouts=replace(Timeouts(), **timeouts))
    upstream = Loopback(url, link)
    try:
        yield upstream
    finally:
        await transport.close()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)
        await asyncio.sleep(0)
