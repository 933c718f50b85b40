"""`Member`: this process as one of several workers, which know of each other through the hub."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from adapters.protocol import Json
from middleware.config import Config
from middleware.machine.channel import Away, Channel, Hearer
from middleware.machine.remote import RemoteBoard
from middleware.server.edge import Edge
from middleware.server.last import Elsewhere, summaries, told
from middleware.server.workers.reception import received
from middleware.state.homes import is_shared
from middleware.state.remote import RemoteState
from middleware.telemetry.tally import Snapshot, together
from middleware.telemetry.vitals import Vitals

_SOON = 0.01
_PATIENCE = 1.5
"""Seconds for what the hub asks others for, who have one."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Which of the workers it is."""

    number: int
    workers: int
    begins: bool
    """It takes nobody else's."""

    @property
    def speaks(self) -> bool:
        """Of what all workers do, one tells."""
        return self.number == 0


class Member(Hearer, Elsewhere):
    def __init__(
        self,
        seat: Seat,
        line: socket.socket,
        door: socket.socket,
        config: Config,
        orphaned: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGTERM),
    ) -> None:
        self.seat = seat
        self._line, self._door, self._orphaned = line, door, orphaned
        self._beginning: set[asyncio.Task[Any]] = set()
        self._channel = Channel(self)
        self.board = RemoteBoard(self._channel)
        self.state = None if is_shared(config) else RemoteState(self._channel)
        """None: each worker asks the config's own."""
        self._edge: Edge | None = None
        self._vitals: Vitals | None = None
        self._others: Sequence[Snapshot] = ()
        """What the others counted when that was last heard."""

    def serves(self, edge: Edge, vitals: Vitals) -> None:
        self._edge, self._vitals = edge, vitals
        edge.elsewhere = self
        vitals.workers, vitals.scrape = self.seat.workers, self._scrape

    async def join(self) -> None:
        await asyncio.get_running_loop().create_connection(lambda: self._channel, sock=self._line)

    def receive(self, protocol: Callable[[], asyncio.Protocol]) -> None:
        """From now on take the connections that come through the door."""
        loop = asyncio.get_running_loop()
        self._door.setblocking(False)

        def receive() -> None:
            if (connection := received(self._door)) is None:
                loop.remove_reader(self._door)
                return
            beginning = loop.connect_accepted_socket(protocol, connection)
            task = loop.create_task(beginning)
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

        loop.add_reader(self._door, receive)
        self._channel.tell("ready")

    def closed(self) -> None:
        """A client's connection has ended."""
        self._channel.tell("closed", within=_SOON)

    # What the hub says ------------------------------------------------------------------------

    def told(self, word: str, values: Sequence[Any]) -> None:
        match word, values:
            case "breaker", [name, until]:
                self.board.breaker_told(name, until)
            case "slot", [slot, held, waiting]:
                self.board.slot_told(slot, held, waiting)
            case "turn", [number, taken]:
                self.board.turn_told(number, taken)
            case "well", [well] if self.state is not None:
                self.state.told_well = well

    def asked(self, word: str, values: Sequence[Any]) -> Any:
        match word, values:
            case "counts", _ if self._vitals is not None:
                return self._vitals.tally.snapshot()
            case "kept", [owner, identity, address] if self._edge is not None:
                return self._kept(self._edge, owner, identity, address)
        return None

    def lost(self) -> None:
        """Nobody would ever end it."""
        self._orphaned()

    def _kept(self, edge: Edge, owner: str | None, identity: str, address: str) -> Any:
        if not identity:
            return summaries(edge.records, owner)
        record, runtime = edge.records.find(owner, identity), edge.runtime
        if record is None:
            return None
        return told(record, runtime.scrubber, address, runtime.config.asks_keys)

    # What the others know ---------------------------------------------------------------------

    async def summaries(self, owner: str | None) -> Sequence[tuple[float, Json]]:
        found = await self._of_others(owner, "", "")
        return [(at, said) for one in found for at, said in one]

    async def whole(self, owner: str | None, identity: str, address: str) -> Json | None:
        found = await self._of_others(owner, identity, address)
        return cast(Json, found[0]) if found else None

    async def _of_others(self, *values: Any) -> Sequence[Any]:
        try:
            found: Sequence[Any] = await self._channel.ask(_PATIENCE, "kept", *values)
        except Away:
            return ()
        return found

    async def _scrape(self) -> Snapshot:
        assert self._vitals is not None
        with suppress(Away):  # what is counted never goes back
            self._others = await self._channel.ask(_PATIENCE, "counts")
        return together([await self._vitals.tally.snapshot(), *self._others])
