"""The body of an answer, read piece by piece until it is due."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from adapters.errors import GatewayError
from adapters.wire.capture import UNNOTED, CapturedCall
from adapters.wire.failures import WireError, broke_off, timed_out, too_large
from adapters.wire.transport.seam import RawReply

MAX_ANSWER = 32 << 20
BROKEN = (WireError, TimeoutError)
"""What a transport raises where no piece comes."""


class Reply:
    """The body of one good answer, read piece by piece."""

    __slots__ = ("_contact", "_raw", "_upstream", "arriving", "headers", "heard", "status")

    arriving: Callable[[float], Awaitable[bytes]]
    """The next piece, for who calls `heard` or `broken` of it: `read` would be a coroutine more
    for each.
    """
    heard: Callable[[bytes], None]
    """To be told of each piece that arrived."""

    def __init__(self, raw: RawReply, upstream: str, contact: CapturedCall | None = None) -> None:
        self._raw = raw
        self._upstream = upstream
        self._contact = contact
        self.status = raw.status
        self.headers: Mapping[str, str] = raw.headers
        self.arriving, self.heard = raw.read, unheard
        if contact is not None:
            contact.answered, contact.status = time.monotonic(), raw.status
            contact.answer_headers = raw.headers
            self.heard = contact.heard
            if contact.chunks is not None:
                contact.chunking = raw.chunking

    async def read(self, due: float) -> bytes:
        try:
            piece = await self.arriving(due)
        except BROKEN as error:
            raise self.broken(error) from error
        self.heard(piece)
        return piece

    def is_whole(self) -> bool:
        """All of the body was read: the next piece would be its end. Of one that comes compressed
        nobody knows.
        """
        return self._raw.over and "content-encoding" not in self.headers

    def broken(self, error: WireError | TimeoutError) -> GatewayError:
        """What it means that no piece came."""
        if isinstance(error, WireError):
            failure = broke_off(self._upstream, error)
        else:
            failure = timed_out(self._upstream, "fell silent")
        if self._contact is not None:
            self._contact.broke(failure)
        return failure

    async def whole(self, due: float) -> bytes:
        """Return the complete body, then give the connection back."""
        pieces, size = [], 0
        try:
            while piece := await self.read(due):
                pieces.append(piece)
                size += len(piece)
                if size > MAX_ANSWER:
                    raise too_large(self._upstream, MAX_ANSWER)
        finally:
            self.close()
        return b"".join(pieces)

    async def beginning(self, limit: int, due: float) -> bytes:
        """Return what can be had of an error body: cut to `limit`, whatever breaks on the way."""
        body = b""
        try:
            with suppress(GatewayError):
                while len(body) < limit and (piece := await self.read(due)):
                    body += piece
        finally:
            self.close()
        return body[:limit]

    async def settle(self) -> None:
        """After the last event: `close` keeps the connection if the body ends at once."""
        if not self._raw.over:
            due = asyncio.get_running_loop().time() + 0.05
            with suppress(GatewayError):
                while not self._raw.over:
                    await self.read(due)
        if self._contact is not None:
            self._contact.failure = None  # what was wanted of it was there

    def close(self) -> None:
        """Return the connection to the pool if the body is over, else cut it: that cancels."""
        if self._contact is not None and self._contact.ended is None:
            self._contact.ended = time.monotonic()
            self._contact.chunking = UNNOTED  # it is kept longer than what the connection read
        self._raw.close()


def unheard(_: bytes) -> None:
    """Nobody keeps it."""
