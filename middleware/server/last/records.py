"""A bounded row of requests; on the way of a request it only keeps what is there anyway."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from adapters.protocol import UpstreamCall
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
        _lighten(visit)
        for one in visit.journey.steps:
            if type(one) is UpstreamCall:
                _lighten(one)
        record, seconds = self._running.pop(visit.id, None), now - visit.began
        if record is None:
            if self.count:
                self._refused.append(Record(visit, visit.owner, seconds=seconds))
            return
        record.seconds = seconds
        if record.dropped:
            return
        record.size = size = _weight(record)
        self._bytes += size
        while self._bytes > MOST_BYTES:
            self._drop()

    def _drop(self) -> None:
        oldest = self._row.popleft()
        self._bytes -= oldest.size
        if oldest.seconds is None:  # it may go on for long, and would fill what nobody looks at
            oldest.dropped, oldest.body = True, b""
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


def _lighten(one: Visit | UpstreamCall) -> None:
    """Keep nothing of it that is as long as the answer."""
    if one.error is not None:
        # An error that is kept would keep everything that was there when it was raised.
        one.error.__traceback__ = one.error.__cause__ = one.error.__context__ = None
    if one.finish is not None and one.finish.turn is not None:
        one.finish = replace(one.finish, turn=None)


def _weight(record: Record) -> int:
    weight = len(record.body)
    for call in record.calls:
        weight += len(call.body) + call.kept
    for note in record.visit.receipt:
        weight += _NOTE + len(note.field) + len(note.text)
    for one in record.calls.tools:
        weight += len(one.arguments) + len(str(one.content))
    return weight
