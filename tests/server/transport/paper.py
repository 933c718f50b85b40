"""A connection without a socket, which notes what is written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import uvicorn

from tests.server.transport.talking import Hasty

_DATE = (b"date", b"today")
BEFORE = b"HTTP/1.1 200 OK\r\ndate: today\r\n"


class Sound:
    """A socket without an error."""

    def getsockopt(self, *_: int) -> int:
        return 0

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 8000

    getpeername = getsockname


class Paper(asyncio.Transport):
    """The connection."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False
        self._written = asyncio.Event()

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))
        self._written.set()

    async def until(self, count: int) -> list[bytes]:
        """Wait for so many writes, and for more that may follow at once."""
        async with asyncio.timeout(5):
            while len(self.writes) < count:
                self._written.clear()
                await self._written.wait()
        await asyncio.sleep(0.01)
        return self.writes

    async def until_whole(self) -> list[bytes]:
        """Wait for the end of an answer in chunks."""
        async with asyncio.timeout(5):
            while not (self.writes and self.writes[-1].endswith(b"\r\n0\r\n\r\n")):
                self._written.clear()
                await self._written.wait()
        return self.writes

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return Sound() if name == "socket" else default

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def connected(how: uvicorn.Config) -> tuple[Any, Paper]:
    """A protocol of that kind, and where it writes."""
    how.load()
    state = uvicorn.Server(how).server_state
    state.default_headers = [_DATE]
    make: Callable[..., Any] = how.http_protocol_class
    protocol, paper = make(how, state, {}), Paper()
    protocol.connection_made(paper)
    return protocol, paper


def serving(app: Any, keep_alive: int = 5) -> tuple[Any, Paper]:
    return connected(
        uvicorn.Config(
            app,
            log_level="critical",
            http=Hasty,
            interface="asgi3",
            ws="none",
            timeout_keep_alive=keep_alive,
        )
    )


def heard(app: Any, request: bytes, count: int = 1) -> list[bytes]:
    """What is written for a request, write by write."""

    async def scene() -> list[bytes]:
        protocol, paper = serving(app)
        protocol.data_received(request)
        return await paper.until(count)

    return asyncio.run(scene())
