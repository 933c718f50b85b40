"""A bounded row of requests; on the way of a request it only keeps what is there anyway."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from adapters.kept import MOST, Kept
from middleware.telemetry import Visit

MOST_BYTES = 16 << 20
"""Of all records together: long conversations must not fill the memory."""


@dataclass(slots=True)
class Record:
    """One request with the calls made for it."""

    visit: Visit
    client: str = ""
    """Digest of the key it came with."""
    path: str = "/v1/chat/completions"
    body: bytes = field(default=b"", repr=False)
    calls: Kept = field(default_factory=list)
    at: float = field(default_factory=time.time)
    seconds: float | None = None
    """None: it is still being answered."""
    size: int = 0
    dropped: bool = False


class Records:
    def __init__(self, count: int) -> None:
        self.count = count
        self._row: deque[Record] = deque()
        self._bytes = 0

    def begin(self, visit: Visit) -> Record | None:
        """Take in a request; None if nothing is kept."""
        if not self.count:
            return None
        record = Record(visit)
        self._row.append(record)
        while len(self._row) > self.count:
            self._drop()
        return record

    def end(self, record: Record, now: float) -> None:
        record.seconds = now - record.visit.began
        if record.visit.error is not None:
            _let_go(record.visit.error)
        if record.dropped:
            return
        record.size = len(record.body) + sum(
            [len(call.body) + min(call.size, MOST) for call in record.calls]
        )
        self._bytes += record.size
        while self._bytes > MOST_BYTES:
            self._drop()

    def _drop(self) -> None:
        oldest = self._row.popleft()
        oldest.dropped = True
        self._bytes -= oldest.size

    def of(self, client: str | None) -> Iterator[Record]:
        """The newest first; None: of every client."""
        return (one for one in reversed(self._row) if client is None or one.client == client)

    def find(self, client: str | None, identity: str) -> Record | None:
        wanted = identity.replace("chatcmpl-", "req_", 1)
        return next((one for one in self.of(client) if one.visit.id == wanted), None)


def _let_go(error: BaseException) -> None:
    """An error that is kept would keep everything that was there when it was raised."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
