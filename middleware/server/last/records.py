"""A bounded row of requests; on the way of a request it only keeps what is there anyway."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from adapters.outcomes import PassedOver
from adapters.wire.capture import Capture
from middleware.server.visits import Visit

PATH = "/v1/x_usetool/last"
MOST_BYTES = 16 << 20
"""Of all records together: long conversations must not fill the memory."""
_NOTE = 200
"""Bytes of a note beside its texts."""
_REFUSED = 20
"""Of these so many beside the others: what strangers ask must not drive those out."""


@dataclass(slots=True)
class Record:
    """One request with the calls made for it."""

    visit: Visit
    owner: str | None = ""
    """Digest of the key it came with; None: it was refused before anybody looked for one."""
    body: bytes = field(default=b"", repr=False)
    calls: Capture = field(default_factory=Capture)
    at: float = field(default_factory=time.time)
    seconds: float | None = None
    """None: it is still being answered."""
    size: int = 0
    dropped: bool = False


class Records:
    def __init__(self, count: int) -> None:
        self.count = count
        self._row: deque[Record] = deque()
        self._refused: deque[Record] = deque(maxlen=_REFUSED)
        self._running: dict[str, Record] = {}
        self._bytes = 0

    @property
    def most(self) -> int:
        return self.count + _REFUSED

    def begin(self, visit: Visit, owner: str = "") -> Record | None:
        """Take in a request that came with the right key; None if nothing is kept."""
        if not self.count:
            return None
        record = self._running[visit.id] = Record(visit, owner)
        self._row.append(record)
        while len(self._row) > self.count:
            self._drop()
        return record

    def end(self, visit: Visit, now: float) -> None:
        for one in (visit, *visit.journey.steps):
            if isinstance(one, PassedOver):
                continue
            if one.error is not None:
                _let_go(one.error)
            if one.finish is not None and one.finish.turn is not None:
                one.finish = replace(one.finish, turn=None)  # as long as the answer
        record = self._running.pop(visit.id, None)
        if record is None:
            if self.count:
                self._refused.append(Record(visit, visit.owner, seconds=now - visit.began))
            return
        record.seconds = now - visit.began
        if record.dropped:
            return
        record.size = _weight(record)
        self._bytes += record.size
        while self._bytes > MOST_BYTES:
            self._drop()

    def _drop(self) -> None:
        oldest = self._row.popleft()
        oldest.dropped = True
        self._bytes -= oldest.size
        oldest.body = b""
        oldest.calls.let_go()

    def of(self, owner: str | None) -> Iterator[Record]:
        """The newest first; None: of every client. Who has a key sees what came with none, too."""
        both = [*reversed(self._row), *reversed(self._refused)]
        return (
            one
            for one in sorted(both, key=lambda one: one.at, reverse=True)
            if owner is None or one.owner == owner or (one.owner is None and owner)
        )

    def find(self, owner: str | None, identity: str) -> Record | None:
        wanted = identity.replace("chatcmpl-", "req_", 1)
        return next((one for one in self.of(owner) if one.visit.id == wanted), None)


def _weight(record: Record) -> int:
    notes = [_NOTE + len(note.field) + len(note.text) for note in record.visit.receipt]
    calls = [len(call.body) + call.kept for call in record.calls]
    results = [len(one.arguments) + len(str(one.content)) for one in record.calls.tools]
    return len(record.body) + sum(notes) + sum(calls) + sum(results)


def _let_go(error: BaseException) -> None:
    """An error that is kept would keep everything that was there when it was raised."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
