"""`Ledger`: takes in requests as they end, and writes their rows in a thread of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Event, Thread

from middleware.accounts.ledger.book import Book, LedgerAway
from middleware.accounts.ledger.rows import Row, row_of
from middleware.server.visits import TOGETHER, Visit

_EVERY, _AGAIN = 0.3, 0.25
"""Seconds between batches, and before a batch that could not be written is tried again."""
_FIRST = 0.5
_END: Sequence[Row] = ()
_MOST = 100_000
"""Rows that may wait for a database that is away."""
_LAST = 8.0


class Ledger:
    """A database that is locked, slow or away delays no answer: its rows come later."""

    def __init__(self, book: Book, say: Callable[[str], None], last: float = _LAST) -> None:
        self.book = book
        self._last = last
        """Seconds for what is left at the end."""
        self.well = False
        """What was last tried went well."""
        self._say = say
        self._ended: list[tuple[Visit, float, float]] = []
        self._rows: list[Row] = []
        self._timer: asyncio.TimerHandle | None = None
        self._batches: SimpleQueue[Sequence[Row]] = SimpleQueue()
        self._taken = self._written = self._lost = 0
        self._tried = Event()
        self._until = float("inf")
        self._thread: Thread | None = None

    @property
    def pending(self) -> int:
        """Rows that are not written yet."""
        return self._taken - self._written

    def ended(self, visit: Visit, now: float) -> None:
        if not visit.counted:
            return
        if self._taken - self._written >= _MOST:
            self._lost += 1
            return
        self._taken += 1
        ended = self._ended
        ended.append((visit, now, time.time()))
        if len(ended) >= TOGETHER:
            self._catch_up()
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_EVERY, self._hand_over)

    def _catch_up(self) -> None:
        ended, self._ended = self._ended, []
        self._rows += [row_of(visit, now, clock) for visit, now, clock in ended]

    def _hand_over(self) -> None:
        self._timer = None
        self._catch_up()
        rows, self._rows = self._rows, []
        if rows:
            self._batches.put(rows)

    async def start(self) -> None:
        """Begin to write; what the first try comes to is known soon, but not waited for long."""
        loop = asyncio.get_running_loop()

        def say(told: str) -> None:
            loop.call_soon_threadsafe(self._say, told)

        self._thread = Thread(target=self._work, args=(say,), name="ledger", daemon=True)
        self._thread.start()
        await asyncio.to_thread(self._tried.wait, _FIRST)

    async def close(self) -> None:
        """Write what is left."""
        if self._timer is not None:
            self._timer.cancel()
        self._hand_over()
        self._until = time.monotonic() + self._last
        self._batches.put(_END)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, self._last + 1)
        if lost := self.pending + self._lost:
            self._say(f"could not be written: {lost} rows are lost")

    def _work(self, say: Callable[[str], None]) -> None:
        """In the thread: it alone writes."""
        self._write((), say)
        self._tried.set()
        while batch := self._batches.get():
            while not self._write(batch, say):
                if time.monotonic() > self._until:
                    return
                time.sleep(_AGAIN)
        self.book.close()

    def _write(self, batch: Sequence[Row], say: Callable[[str], None]) -> bool:
        try:
            self.book.write(batch)
        except LedgerAway as error:
            if self.well or not self._tried.is_set():
                say(f"away, its rows wait: {error}")
            self.well = False
        else:
            if not self.well and self._tried.is_set():
                say("back")
            self.well = True
            self._written += len(batch)
        return self.well
