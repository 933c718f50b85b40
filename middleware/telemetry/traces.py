"""Tells a collector of finished requests, from a thread, so that it delays none.

That a collector is away is said once; what does not fit into the row meanwhile is dropped.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from middleware.server.visits import Visit

_MOST = 2048
"""Requests that wait to be told."""
_BATCH = 128
_PAUSE = 1.0
"""Seconds in which a batch gathers."""


class Told(NamedTuple):
    """A request that is over."""

    visit: Visit
    now: float
    """Event-loop time of its end."""
    clock: float
    """Seconds since 1970, then."""


class Exporter(Protocol):
    """Makes spans of requests and sends them."""

    def export(self, ended: Sequence[Told]) -> bool:
        """Whether they arrived; blocks, within a limit."""

    def close(self) -> None:
        """Send nothing any more, also not again."""


class Tracer:
    """An `Observer`; its thread runs from the first request to `stop`."""

    def __init__(self, exporter: Exporter, say: Callable[[str], None]) -> None:
        self.dropped = 0
        self._exporter = exporter
        self._say = say
        self._row: queue.Queue[Told] = queue.Queue(_MOST)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._well = True

    def ended(self, visit: Visit, now: float) -> None:
        try:
            self._row.put_nowait(Told(visit, now, time.time()))
        except queue.Full:
            self.dropped += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._tell, name="traces", daemon=True)
            self._thread.start()

    def stop(self, seconds: float) -> None:
        """Send what waits, but wait no longer than this; blocks."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(seconds)
            self._exporter.close()
            self._thread.join(_PAUSE)

    def _tell(self) -> None:
        while not (self._over.wait(_PAUSE) and self._row.empty()):
            while batch := self._next():
                well = self._exporter.export(batch)
                self.dropped += 0 if well else len(batch)
                self._news(well)

    def _next(self) -> list[Told]:
        batch: list[Told] = []
        while len(batch) < _BATCH and not self._row.empty():
            batch.append(self._row.get_nowait())
        return batch

    def _news(self, well: bool) -> None:
        if well == self._well:
            return
        self._well = well
        lost = f" {self.dropped} requests were not told." if self.dropped else ""
        self._say(
            f"traces: the collector takes them again.{lost}"
            if well
            else "traces: the collector of [telemetry] otlp does not take them; requests go on."
        )
