"""The body of an answer, read piece by piece until it is due."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise

import aiohttp

from adapters.errors import GatewayError
from adapters.wire.capture import CapturedCall
from adapters.wire.failures import broke_off, timed_out, too_large

MAX_ANSWER = 32 << 20
BROKEN = (aiohttp.ClientError, OSError, asyncio.IncompleteReadError)


class Reply:
    """The body of one good answer, read piece by piece."""

    __slots__ = (
        *("_alarm", "_by_chunks", "_contact", "_loop", "_response", "_rings_at", "_upstream"),
        *("_waiting_until", "headers", "status"),
    )

    def __init__(
        self, response: aiohttp.ClientResponse, upstream: str, contact: CapturedCall | None = None
    ) -> None:
        self._response = response
        self._upstream = upstream
        self._contact = contact
        if contact is not None:
            contact.answered, contact.status = time.monotonic(), response.status
            contact.answer_headers = response.headers
        self._by_chunks = contact is not None and contact.chunks is not None
        self._loop = asyncio.get_running_loop()
        self._alarm: asyncio.Handle | None = None
        # Not `TimerHandle.when()`: what is due within a millisecond is a plain handle in uvloop.
        self._rings_at = math.inf
        self._waiting_until: float | None = None
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self, due: float) -> bytes:
        content = self._response.content
        self._waiting_until = due
        # An answer that is here to its end is read without waiting.
        if due < self._rings_at and not content.is_eof():
            self._set_alarm(due)
        try:
            if self._by_chunks:
                return await self._read_chunks(content)
            piece = await content.readany()
        except TimeoutError as error:
            raise self._broken(timed_out(self._upstream, "fell silent")) from error
        except BROKEN as error:
            raise self._broken(broke_off(self._upstream, error)) from error
        finally:
            self._waiting_until = None
        if self._contact is not None:
            self._contact.heard(piece)
        return piece

    async def _read_chunks(self, content: aiohttp.StreamReader) -> bytes:
        """All that is there, noting the chunks in which it was sent: what is recorded must not
        depend on how busy this machine was.
        """
        assert self._contact is not None
        piece, sizes = b"", []
        while not piece and not content.at_eof():
            piece, _ = await content.readchunk()
        # A broken connection is told by the read after this one.
        if self._contact.size + len(piece) < content.total_bytes and content.exception() is None:
            # aiohttp would give them one by one, at the price of all other reading.
            ends = [end - self._contact.size for end in content._http_chunk_splits or ()]
            first = len(piece)
            piece += content.read_nowait()
            cuts = [0, first, *(end for end in ends if first < end < len(piece)), len(piece)]
            sizes = [end - start for start, end in pairwise(cuts)]
        self._contact.heard(piece, sizes)
        return piece

    def _broken(self, failure: GatewayError) -> GatewayError:
        if self._contact is not None:
            self._contact.broke(failure)
        return failure

    # One timer a stream, set again only when it rings: a timer a read costs more than the read.
    def _set_alarm(self, due: float) -> None:
        self._unset_alarm()
        self._rings_at = due
        self._alarm = self._loop.call_at(due, self._ring)

    def _unset_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._rings_at = None, math.inf

    def _ring(self) -> None:
        self._unset_alarm()
        if self._waiting_until is None:
            return
        if self._loop.time() < self._waiting_until:
            self._set_alarm(self._waiting_until)
        else:
            self._response.content.set_exception(TimeoutError())

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
        """After the last event: keep the connection if the upstream ends its body at once."""
        due = self._loop.time() + 0.05
        with suppress(GatewayError):
            while not self._response.content.at_eof():
                await self.read(due)
        if self._contact is not None:
            self._contact.failure = None  # what was wanted of it was there
        self.close()

    def close(self) -> None:
        """Return the connection to the pool if the body is over, else cut it: that cancels."""
        self._unset_alarm()
        if self._contact is not None and self._contact.ended is None:
            self._contact.ended = time.monotonic()
        self._response.close()
