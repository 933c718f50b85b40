"""Answers on their way out: a JSON body, or a stream of frames with its heartbeat."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

from starlette.types import Send
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from adapters.protocol import Event
from middleware.doors.door import Stream
from middleware.server.terminal import one_line

CONNECTION = "usetool.connection"
"""Where in a request's scope its `ClientConnection` stands."""
PIECES = "usetool.response.pieces"
"""A message of ASGI's, of our own: parts of a body, each a chunk, of which more follow."""
RawHeaders = list[tuple[bytes, bytes]]
_JSON = (b"content-type", b"application/json")
# Proxies must neither buffer a stream nor change it.
_STREAM: tuple[tuple[bytes, bytes], ...] = (
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


class ClientConnection(Protocol):
    """What an answer may ask of the connection it leaves on, beyond what ASGI has."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The one it runs in, which would take longer to ask for."""

    def watch(self, when_left: Callable[[], None]) -> None:
        """Call this once the client has left before the end of its answer."""

    def gather(self) -> None:
        """Write together what is said in one turn of the loop: an answer that is here whole has
        many pieces, and each is to stay one.
        """

    def cut(self) -> None:
        """End it without the rest of the answer, or without any."""


def raw(headers: Mapping[str, str]) -> RawHeaders:
    """As bytes; what came from elsewhere may not end a header and begin another."""
    return [
        (
            name.lower().encode(),
            (value if value.isprintable() else one_line(value)).encode("latin-1", "replace"),
        )
        for name, value in headers.items()
    ]


async def send_json(
    send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]]
) -> None:
    length = (b"content-length", b"%d" % len(body))
    await send(
        {"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]}
    )
    await send({"type": "http.response.body", "body": body})


class EventStream:
    """One response in frames, started by the first event or by the first heartbeat.

    Load balancers cut connections on which nothing moves, so after `heartbeat` seconds of silence
    the door's heartbeat goes out, and again, before and after the first event.
    """

    def __init__(
        self,
        send: Send,
        headers: RawHeaders,
        writer: Stream,
        heartbeat: float,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.writer = writer
        self._send = send
        self._headers = headers
        self._heartbeat = heartbeat
        self._loop = loop
        self._moved = self._loop.time()
        self._busy = False
        self._over = False
        self._timer = self._loop.call_later(heartbeat, self._beat)
        self._ping: asyncio.Task[None] | None = None
        self.started = False
        self._piece = {"type": "http.response.body", "body": b"", "more_body": True}
        """One message for all pieces: a dict for each would be a tenth of what sending it costs."""

    async def start(self, headers: RawHeaders | None = None) -> None:
        self.started = self._busy = True
        media_type = (b"content-type", self.writer.media_type.encode())
        await self._send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [media_type, *_STREAM, *self._headers, *(headers or ())],
            }
        )
        self._busy = False

    # No coroutine, as each piece would pay for one: only what must wait is.
    def write(self, frames: bytes) -> Awaitable[None]:
        if self._ping is not None:
            return self._write_behind(self._ping, frames)
        self._piece["body"] = frames
        sent: Awaitable[None] = self._send(self._piece)
        if isinstance(sent, asyncio.Future) and sent.done():
            self._moved = self._loop.time()
            return sent
        return self._wait_for(sent)

    async def _write_behind(self, ping: asyncio.Task[None], frames: bytes) -> None:
        await _end_of(ping)
        await self.write(frames)

    async def _wait_for(self, sent: Awaitable[None]) -> None:
        self._busy = True
        await sent
        self._busy = False
        self._moved = self._loop.time()

    async def write_each(self, batches: Iterable[Sequence[Event]], together: bool) -> None:
        """Write what each batch says as a piece of its own, in one go where they may be told so."""
        pieces = [*map(self.writer.render, batches)]
        if not together or sum(map(len, pieces)) > HIGH_WATER_LIMIT:
            for piece in pieces:
                await self.write(piece)
            return
        if self._ping is not None:
            await _end_of(self._ping)
        await self._wait_for(self._send({"type": PIECES, "pieces": pieces}))

    async def last(self, frames: bytes) -> None:
        """Write the last frames and end the response; nothing is written after them."""
        self._timer.cancel()
        if self._ping is not None:
            await _end_of(self._ping)
        if not self._over:
            self._over = True
            await self._send({"type": "http.response.body", "body": frames, "more_body": False})

    def stop(self) -> None:
        """No more heartbeats."""
        self._timer.cancel()
        if self._ping is not None:
            self._ping.cancel()

    # One timer a stream, set again only when it rings.
    def _beat(self) -> None:
        due, now = self._moved + self._heartbeat, self._loop.time()
        if now >= due:
            due = now + self._heartbeat
            if self._ping is None and not self._busy:
                # Said now: what is written later has later numbers, and waits for it.
                beat = self.writer.heartbeat()
                self._ping = self._loop.create_task(self._send_ping(beat))
        self._timer = self._loop.call_at(due, self._beat)

    async def _send_ping(self, body: bytes) -> None:
        if not self.started:
            await self.start()
        await self._send({"type": "http.response.body", "body": body, "more_body": True})
        self._moved = self._loop.time()
        self._ping = None


async def _end_of(ping: asyncio.Task[None]) -> None:
    """Wait for it; whoever is cancelled here must not end the ping too. Where it could not be sent,
    nothing can.
    """
    await asyncio.wait([ping])
    ping.result()
