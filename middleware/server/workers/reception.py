"""`Reception`: takes connections in, and gives each to the worker that has the fewest.

Were the sockets the workers' own, the first to wake would take all that wait, and keep them:
clients hold their connections for hours.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from middleware.machine.hub import Hub, WorkerLine
from middleware.server.transport.address import BACKLOG, taken_addresses

_AT_ONCE = 64
_AGAIN = 0.1
"""Seconds until it is tried again to take one in, where no worker is there or no file is free."""


@dataclass(slots=True)
class Reception:
    listening: Sequence[socket.socket]
    hub: Hub
    _turns: dict[int, int] = field(default_factory=dict)
    """Worker → when it was last given one."""
    _count: int = 0
    _again: asyncio.TimerHandle | None = None

    def open(self) -> None:
        self._again = None
        with taken_addresses(self.listening):
            for listening in self.listening:
                listening.listen(BACKLOG)
        for listening in self.listening:
            listening.setblocking(False)
            asyncio.get_running_loop().add_reader(listening, self._take_in, listening)

    def close(self) -> None:
        """Whoever comes from now on is refused."""
        self._rest()
        for listening in self.listening:
            listening.close()

    def _rest(self) -> None:
        if self._again is not None:
            self._again.cancel()
        for listening in self.listening:
            if listening.fileno() >= 0:
                asyncio.get_running_loop().remove_reader(listening)

    def _take_in(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            workers = [line for line in self.hub.workers.values() if line.ready.is_set()]
            try:
                connection = listening.accept()[0] if workers else None
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:  # no file is free
                connection = None
            if connection is None:
                self._rest()
                self._again = asyncio.get_running_loop().call_later(_AGAIN, self.open)
                return
            with connection:
                self._give(connection, workers)

    def _give(self, connection: socket.socket, workers: list[WorkerLine]) -> None:
        turns = self._turns
        for line in sorted(workers, key=lambda one: (one.connections, turns.get(one.number, 0))):
            if line.hand_over(connection):
                self._count += 1
                turns[line.number] = self._count
                return


def received(door: socket.socket) -> socket.socket | None:
    """What came through a worker's door; None: it is closed."""
    with suppress(ConnectionError):
        found = socket.recv_fds(door, 1, 1)[1]
        return socket.socket(fileno=found[0]) if found else None
    return None
