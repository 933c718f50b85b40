"""`Hub`: what all workers of a machine have in common; it lives in the process above them."""

from __future__ import annotations

import asyncio
import math
import socket
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from middleware.machine.board import Board, Entry
from middleware.machine.channel import Away, Channel, Hearer
from middleware.machine.memory import MemoryBoard
from middleware.state.store import Hold, State
from middleware.telemetry.tally import Snapshot, lasting_of, together

T = TypeVar("T")
_MANY = 1 << 30
_MOST_BREAKERS = 4096
_SOON = 0.01
"""Seconds within which workers hear of slots."""
_PATIENCE = 1.0
"""Seconds a worker has to say what it knows."""
_BRIEF = 60.0
"""What is held so long at most ends by itself, where its worker has died."""


@dataclass(slots=True)
class Hub:
    state: State | None
    """None: workers ask it themselves."""
    board: Board = field(default_factory=MemoryBoard)
    workers: dict[int, WorkerLine] = field(default_factory=dict)
    _ended: Snapshot = field(default_factory=dict)
    """What workers counted that have died."""
    _breakers: dict[str, float] = field(default_factory=dict)
    """Those that have ever been open, and when each lets a call through; 0: closed."""
    _slots: dict[str, tuple[int, int]] = field(default_factory=dict)
    """As workers were told: how many hold it, how many wait."""
    _changed: set[str] = field(default_factory=set)

    def joined(self, line: WorkerLine) -> None:
        self.workers[line.number] = line
        for name, until in self._breakers.items():
            line.tell("breaker", name, until)
        for slot, numbers in self._slots.items():
            line.tell("slot", slot, *numbers)
        line.tell("well", self.state is None or self.state.well)

    def left(self, line: WorkerLine) -> None:
        self._ended = together([self._ended, lasting_of(line.counted)])
        if self.workers.get(line.number) is line:
            del self.workers[line.number]

    def breaker_changed(self, name: str) -> None:
        closed = self.board.breaker(name) == "closed"
        until = 0.0 if closed else time.monotonic() + self.board.reopens(name)
        if until or self._breakers.get(name):
            if len(self._breakers) >= _MOST_BREAKERS:
                del self._breakers[next(iter(self._breakers))]
            self._breakers[name] = until
            for line in self.workers.values():
                line.tell("breaker", name, until)

    def slot_changed(self, slot: str) -> None:
        if not self._changed:
            asyncio.get_running_loop().call_later(_SOON, self._tell_slots)
        self._changed.add(slot)

    def _tell_slots(self) -> None:
        changed, self._changed = self._changed, set()
        for slot in changed:
            held = _MANY - self.board.free(slot, _MANY)
            numbers = held, self.board.waiting(slot)
            if numbers == (0, 0):
                self._slots.pop(slot, None)
            else:
                self._slots[slot] = numbers
            for line in self.workers.values():
                line.tell("slot", slot, *numbers)

    def tell_well(self) -> None:
        """Say how the state is; to be called now and then."""
        well = self.state is None or self.state.well
        for line in self.workers.values():
            line.tell("well", well)

    async def counts(self, asking: WorkerLine) -> Sequence[Snapshot]:
        """What the others counted; of one that is silent what it said last."""
        others = [line for line in self.workers.values() if line is not asking]
        await asyncio.gather(*(line.count() for line in others))
        return [self._ended, *(line.counted for line in others)]

    async def kept(self, asking: WorkerLine, values: Sequence[Any]) -> Sequence[Any]:
        """What each other worker says of its last requests; who is silent is left out."""
        others = [line for line in self.workers.values() if line is not asking]
        found = await asyncio.gather(*(line.ask("kept", *values) for line in others))
        return [one for one in found if one is not None]


class WorkerLine(Hearer):
    """One worker, as the hub knows it: what it holds is given back when it dies."""

    def __init__(self, hub: Hub, number: int, door: socket.socket) -> None:
        self.number = number
        self.connections = 0
        """Of clients, that it has."""
        self.channel = Channel(self)
        self.ready = asyncio.Event()
        self.counted: Snapshot = {}
        """As it was last heard."""
        self._hub, self._door = hub, door
        self._board, self._state = hub.board, hub.state
        self._held: dict[int, str] = {}
        """Number of a permission → the slot."""
        self._in_line: dict[int, asyncio.Task[None]] = {}
        self._probes: set[str] = set()
        self._requests: dict[str, set[str]] = {}
        """Request → its counters that do not end soon by themselves."""

    def tell(self, word: str, *values: Any) -> None:
        self.channel.tell(word, *values)

    async def ask(self, word: str, *values: Any) -> Any:
        """None: it did not answer in time."""
        try:
            return await self.channel.ask(_PATIENCE, word, *values)
        except Away:
            return None

    def hand_over(self, connection: socket.socket) -> bool:
        """Give it a client's connection; False: it takes none."""
        try:
            socket.send_fds(self._door, [b"c"], [connection.fileno()])
        except OSError:
            return False
        self.connections += 1
        return True

    async def count(self) -> None:
        self.counted = await self.ask("counts") or self.counted

    def told(self, word: str, values: Sequence[Any]) -> None:
        match word, values:
            case "leave", [name, well, probe]:
                self._leave(name, well, probe)
            case "release", [number]:
                self._release(number)
            case "settle", [request, amounts]:
                self._settle(request, amounts)
            case "mark", [name, text, seconds, later] if self._state is not None:
                _at_once(self._state.mark(name, text, seconds, later))
            case "closed", _:
                self.connections -= 1
            case "ready", _:
                self.ready.set()

    def asked(self, word: str, values: Sequence[Any]) -> Any:
        state = self._state
        match word, values:
            case "enter", [name]:
                return self._enter(name)
            case "slot", [number, slot, limit, seconds]:
                return self._take_slot(number, slot, limit, seconds)
            case "take", [request, holds] if state is not None:
                return self._take(state, request, [Hold(*one) for one in holds])
            case "sums", [counters] if state is not None:
                return _at_once(state.sums(counters))
            case "read", [names] if state is not None:
                return [one and (*one,) for one in _at_once(state.read(names))]
            case "counts", _:
                return self._hub.counts(self)
            case "kept", _:
                return self._hub.kept(self, values)
        return None

    def lost(self) -> None:
        self._door.close()
        for name in [*self._probes]:
            self._leave(name, None, probe=True)
        for number in [*self._held, *self._in_line]:
            self._release(number)
        for request, counters in [*self._requests.items()]:
            self._settle(request, dict.fromkeys(counters, 0.0))
        self._hub.left(self)

    # Breakers ---------------------------------------------------------------------------------

    def _enter(self, name: str) -> Entry:
        entry = _at_once(self._board.enter(name))
        if entry == "probe":
            self._probes.add(name)
        return entry

    def _leave(self, name: str, well: bool | None, probe: bool) -> None:
        if probe:
            self._probes.discard(name)
        self._board.leave(name, well, probe)
        self._hub.breaker_changed(name)

    # Slots ------------------------------------------------------------------------------------

    def _take_slot(self, number: int, slot: str, limit: int, seconds: float) -> bool | None:
        """None: it stands in line, and is told its turn."""
        if _at_once(self._board.take(slot, limit, 0)):
            self._held[number] = slot
            self._hub.slot_changed(slot)
            return True
        if seconds <= 0:
            return False
        waiting = self._wait(number, slot, limit, seconds)
        self._in_line[number] = asyncio.get_running_loop().create_task(waiting)
        return None

    async def _wait(self, number: int, slot: str, limit: int, seconds: float) -> None:
        self._hub.slot_changed(slot)
        try:
            if taken := await self._board.take(slot, limit, seconds):
                self._held[number] = slot
            self.tell("turn", number, taken)
        finally:
            del self._in_line[number]
            self._hub.slot_changed(slot)

    def _release(self, number: int) -> None:
        """Give a slot back, or leave the line."""
        if waiting := self._in_line.get(number):
            waiting.cancel()
        elif slot := self._held.pop(number, ""):
            self._board.give(slot)
            self._hub.slot_changed(slot)

    # State ------------------------------------------------------------------------------------

    def _take(self, state: State, request: str, holds: Sequence[Hold]) -> Sequence[Any]:
        holds = [one._replace(limit=math.inf) if one.limit is None else one for one in holds]
        taken = _at_once(state.take(request, holds))
        lasting = {one.counter for one in holds if not one.sliding or one.seconds > _BRIEF}
        if lasting and not taken.refused:
            self._requests.setdefault(request, set()).update(lasting)
        return taken.sums, taken.refused, taken.wait

    def _settle(self, request: str, amounts: Mapping[str, float]) -> None:
        if (held := self._requests.get(request)) is not None:
            held.difference_update(amounts)
            if not held:
                del self._requests[request]
        if self._state is not None:
            _at_once(self._state.settle(request, amounts))


def _at_once(question: Coroutine[Any, Any, T]) -> T:
    """What is answered without suspending, as boards and states of this process do."""
    try:
        question.send(None)
    except StopIteration as answer:
        found: T = answer.value
        return found
    raise RuntimeError("it suspends")
