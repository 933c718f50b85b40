"""The client of all that is reached without a proxy: HTTP/1.1 on connections that are kept.

No redirects, no cookies, no proxies of the environment.
"""

from __future__ import annotations

import asyncio

from adapters.wire.failures import Unanswered
from adapters.wire.transport.connection import Connection, LiveReply
from adapters.wire.transport.dialer import Dialer
from adapters.wire.transport.request import Origin, Outgoing, target_of

MOST_IDLE, IDLE_SECONDS = 100, 30.0
"""Connections kept for the next request, all upstreams together, and how long."""


class HttpClient:
    def __init__(self, dialer: Dialer | None = None, idle_seconds: float = IDLE_SECONDS) -> None:
        self._dialer = dialer or Dialer()
        self._idle_seconds = idle_seconds
        self._idle: dict[Origin, list[Connection]] = {}
        """Of each list the last was used last."""
        self._sweep: asyncio.TimerHandle | None = None

    async def send(self, request: Outgoing, due: float) -> LiveReply:
        origin = target_of(request.url).origin
        kept = self._take(origin)
        if kept is not None:
            try:
                return await kept.ask(request, due)
            except Unanswered as error:
                if error.heard:
                    raise
                # The upstream closed it while it was idle; nothing was answered, so asking once
                # more is safe.
        connection = await self._dialer.dial(
            origin, lambda: Connection(origin, self), request.connect_seconds, due
        )
        return await connection.ask(request, due)

    async def close(self) -> None:
        for connection in [one for idle in self._idle.values() for one in idle]:
            connection.cut()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        await asyncio.sleep(0)  # then the sockets are closed

    def keep(self, connection: Connection) -> None:
        """Hold it for the next request, unless enough are held."""
        if sum(map(len, self._idle.values())) >= MOST_IDLE:
            connection.cut()
            return
        loop = connection.loop
        connection.idle_since = loop.time()
        self._idle.setdefault(connection.origin, []).append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(self._idle_seconds, self._cut_idle)

    def forget(self, connection: Connection) -> None:
        """It is closed."""
        idle = self._idle.get(connection.origin, [])
        if connection in idle:
            idle.remove(connection)

    def _take(self, origin: Origin) -> Connection | None:
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if connection.idle_since > connection.loop.time() - self._idle_seconds:
                return connection
            connection.cut()
        return None

    def _cut_idle(self) -> None:
        """One timer for all of them: what nobody wants may wait for it twice as long."""
        loop = asyncio.get_running_loop()
        oldest = loop.time() - self._idle_seconds
        for idle in [*self._idle.values()]:
            for connection in [one for one in idle if one.idle_since <= oldest]:
                connection.cut()
        self._idle = {origin: idle for origin, idle in self._idle.items() if idle}
        self._sweep = loop.call_later(self._idle_seconds, self._cut_idle) if self._idle else None
