"""One connection to an upstream, and the exchange that is on it.

Bytes are heard as they come, by callbacks; who reads waits for one future. One alarm serves all
waiting: a timer for each read costs more than the read.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Mapping
from typing import Protocol, cast

from adapters.wire.capture import Chunking
from adapters.wire.failures import Unanswered
from adapters.wire.transport.request import Origin, Outgoing
from adapters.wire.transport.response import Incoming, NotedIncoming

MOST_HELD = 128 << 10
"""Bytes of an answer that wait for a slow reader, and one read of the socket more."""
_SLICE = 64 << 10
"""Bytes of a request's body given to the socket at once."""


class Connection(asyncio.Protocol):
    """Carries one exchange at a time."""

    __slots__ = (
        *("_alarm", "_congested", "_due", "_holder", "_incoming", "_paused", "_rings_at"),
        *("_takes", "_transport", "_unsent", "_waiter", "idle_since", "loop", "origin"),
    )

    def __init__(self, origin: Origin, holder: Holder) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self._holder = holder
        self.loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        """None: it is closed."""
        self._incoming: Incoming | None = None
        """Of the exchange that is on."""
        self._waiter: asyncio.Future[bytes] | None = None
        self._takes = False
        """It is given what comes."""
        self._due = math.inf
        self._alarm: asyncio.Handle | None = None
        # Not `TimerHandle.when()`: what is due within a millisecond is a plain handle in uvloop.
        self._rings_at = math.inf
        self._unsent = memoryview(b"")
        self._congested = False
        """The socket takes no more of the request for now."""
        self._paused = False
        """No more of the answer is wanted for now."""

    async def ask(self, request: Outgoing, due: float) -> LiveReply:
        """Send a request and return once the head of its answer is here."""
        incoming = NotedIncoming() if request.noted else Incoming()
        reply = None
        try:
            self._send(request, incoming)
            while not incoming.ready:
                await self.wait(incoming, due)
            reply = LiveReply(self, incoming)
        finally:
            if reply is None:
                self.cut()
        return reply

    # No coroutine, as each piece of a stream would pay for one more.
    def wait(self, incoming: Incoming, due: float, takes: bool = False) -> asyncio.Future[bytes]:
        """Is over when something came, and is that for who takes it; raise what broke the answer,
        or that nothing is in time.
        """
        if incoming.failure is not None:
            raise incoming.failure
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        if due < self._rings_at:
            self.require_time(due)  # where something always comes first, no alarm is heard
            self._set_alarm(due)
        self._due, self._takes = due, takes
        waiter = self._waiter = self.loop.create_future()
        return waiter

    def require_time(self, due: float) -> None:
        if self.loop.time() >= due:
            raise TimeoutError

    def release(self, incoming: Incoming) -> None:
        """Keep what can carry another exchange, cut what cannot: that cancels."""
        if incoming is not self._incoming:
            return  # it was released before
        sent = not (self._unsent or self._congested)
        if incoming.over and incoming.reusable and sent:
            self._incoming = None
            self._holder.keep(self)
        else:
            self.cut()

    def cut(self) -> None:
        self._leave(clean=False)

    # The socket's calls ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        incoming = self._incoming
        if incoming is None:
            self.cut()  # nothing was asked
            return
        if incoming.feed(data):
            if incoming.held > MOST_HELD:
                self._pause()
        elif incoming.failure is not None or not incoming.reusable:
            self.cut()
        self._wake(incoming)

    def eof_received(self) -> None:
        self._leave(clean=True)

    def connection_lost(self, error: Exception | None) -> None:
        self._leave(clean=error is None)

    def pause_writing(self) -> None:
        self._congested = True

    def resume_writing(self) -> None:
        self._congested = False
        self._send_on()

    # -------------------------------------------------------------------------------------------

    def _send(self, request: Outgoing, incoming: Incoming) -> None:
        head, body = request.head(), request.body or b""
        if self._transport is None:  # closed by who accepted it
            raise Unanswered
        self._incoming = incoming
        if len(body) <= _SLICE:
            self._transport.writelines((head, body))
            return
        self._transport.write(head)
        self._unsent = memoryview(body)
        self._send_on()

    def _send_on(self) -> None:
        while self._unsent and not self._congested and self._transport is not None:
            piece, self._unsent = self._unsent[:_SLICE], self._unsent[_SLICE:]
            self._transport.write(piece)

    def _pause(self) -> None:
        """Until the reader, who is slow, has taken what is here."""
        if self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _leave(self, clean: bool) -> None:
        """Close it, if it is not closed; what is underway ends here."""
        transport, self._transport = self._transport, None
        if transport is None:
            return
        self._unsent = memoryview(b"")
        self._unset_alarm()
        incoming, self._incoming = self._incoming, None
        if incoming is not None:
            incoming.close(clean)
            self._wake(incoming)
        self._holder.forget(self)
        transport.abort()

    def _wake(self, incoming: Incoming) -> None:
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        if not self._takes:
            waiter.set_result(b"")
        elif (piece := incoming.take()) or incoming.over:
            waiter.set_result(piece)
        elif incoming.failure is not None:
            waiter.set_exception(incoming.failure)

    def _set_alarm(self, due: float) -> None:
        self._unset_alarm()
        self._rings_at = due
        self._alarm = self.loop.call_at(due, self._ring)

    def _unset_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._rings_at = None, math.inf

    def _ring(self) -> None:
        self._alarm, self._rings_at = None, math.inf
        if self._waiter is None or self._waiter.done():
            return
        if self.loop.time() < self._due:
            self._set_alarm(self._due)
        else:
            self._waiter.set_exception(TimeoutError())


class Holder(Protocol):
    """Who has connections that are idle."""

    def keep(self, connection: Connection) -> None: ...

    def forget(self, connection: Connection) -> None: ...


class LiveReply:
    """An answer on a connection."""

    __slots__ = ("_connection", "_incoming", "chunking", "headers", "status")

    def __init__(self, connection: Connection, incoming: Incoming) -> None:
        self._connection = connection
        self._incoming = incoming
        self.chunking: Chunking = incoming
        self.status = incoming.status
        self.headers: Mapping[str, str] = incoming.headers

    @property
    def over(self) -> bool:
        return self._incoming.over and not self._incoming.pieces

    def read(self, due: float) -> Awaitable[bytes]:
        incoming, connection = self._incoming, self._connection
        if incoming.pieces or incoming.over or incoming.coded:
            if incoming.coded:
                return self._read_inflated(due)
            piece = incoming.take()
            if incoming.over:
                return _given(piece)
            if piece:
                connection.require_time(due)  # where something always is here, nobody waits
                return _given(piece)
        return connection.wait(incoming, due, True)

    async def _read_inflated(self, due: float) -> bytes:
        incoming, connection = self._incoming, self._connection
        connection.require_time(due)
        while not (piece := incoming.take()):
            if incoming.over:
                return b""
            await connection.wait(incoming, due)
        await asyncio.sleep(0)  # what inflates far would keep everybody else waiting
        return piece

    def close(self) -> None:
        self._connection.release(self._incoming)


async def _given(piece: bytes) -> bytes:
    return piece
