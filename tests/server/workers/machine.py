"""Several workers and their hub in one process; only the sockets between them are real."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from middleware import config
from middleware.machine.hub import Hub, WorkerLine
from middleware.machine.memory import MemoryBoard
from middleware.server.workers.member import Member, Seat
from middleware.state.memory import MemoryState

CONFIG = '[server]\nworkers = 2\n[upstreams.u]\nkind = "scripted"\n[models.m]\nupstream = "u"\n'


@dataclass
class Machine:
    hub: Hub
    lines: list[WorkerLine] = field(default_factory=list)
    orphans: int = 0
    _sockets: list[socket.socket] = field(default_factory=list)

    async def worker(self) -> Member:
        """One more."""
        number = len(self.lines)
        (ours, theirs), (our_door, door) = socket.socketpair(), socket.socketpair()
        line = WorkerLine(self.hub, number, our_door)
        self.lines.append(line)
        self._sockets += [our_door, door]
        await asyncio.get_running_loop().create_unix_connection(lambda: line.channel, sock=ours)
        self.hub.joined(line)
        said = config.parse(CONFIG, environment={})
        member = Member(Seat(number, 2, False), theirs, door, said, self._orphaned)
        await member.join()
        return member

    def _orphaned(self) -> None:
        self.orphans += 1

    async def kill(self, number: int) -> None:
        """Have a worker end without a word."""
        self.lines[number].channel.close()
        await until(lambda: number not in self.hub.workers)

    def close(self) -> None:
        for line in self.lines:
            line.channel.close()
        for one in self._sockets:
            one.close()


@asynccontextmanager
async def machine(board: MemoryBoard | None = None) -> AsyncIterator[Machine]:
    made = Machine(Hub(MemoryState(), board or MemoryBoard()))
    try:
        yield made
    finally:
        made.close()
        await asyncio.sleep(0)


async def until(true: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if true():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not come true within 10 seconds")
