"""`FileState`: counted in memory, written behind to an SQLite file, read from it at the start.

Requests never wait for the file: a thread reads and writes it, at most half a second behind.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import orjson

from middleware.state.counter import Counter
from middleware.state.memory import MemoryState
from middleware.state.rows import CounterRow, MarkRow, Rows
from middleware.state.store import Hold, Home, Mark, Taken

_EVERY, _AGAIN = 0.25, 0.5
"""Seconds between two writings, and after one that failed."""
_FIRST_WAIT = 0.2
"""Seconds the first request waits for the file to be read; what comes later is added then."""
_LAST_WAIT = 5.0
_SHORT = 120.0
"""Up to how many seconds of life the parts of a counter are written too."""


class FileState:
    home: Home = "file"

    def __init__(
        self, path: Path, say: Callable[[str], None], clock: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._say = say
        self._clock = clock
        self._memory = MemoryState(clock)
        self._lock = threading.Lock()
        """Around the memory; never held while the file is read or written."""
        self._counters: set[str] = set()
        self._marks: set[str] = set()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._read, self._changed, self._ending = (threading.Event() for _ in range(3))
        self._failed = False

    @property
    def well(self) -> bool:
        return not self._failed

    @property
    def marked(self) -> bool:
        return self._thread is None or self._memory.marked

    async def take(self, request: str, holds: Sequence[Hold]) -> Taken:
        if self._thread is None:
            self._begin()
        with self._lock:
            taken = self._memory.taken(request, holds)
            if not taken.refused:
                self._note(self._counters, taken.sums)
        return taken

    async def settle(self, request: str, amounts: Mapping[str, float]) -> None:
        if self._thread is None:
            self._begin()
        with self._lock:
            self._memory.settled(request, amounts)
            self._note(self._counters, amounts)

    async def sums(self, counters: Sequence[str]) -> Sequence[float]:
        if self._thread is None:
            self._begin()
        with self._lock:
            return await self._memory.sums(counters)

    async def read(self, names: Sequence[str]) -> Sequence[Mark | None]:
        if self._thread is None:
            self._begin()
        return self._memory.known(names)  # which changes nothing, so it needs no lock

    async def mark(self, name: str, text: str, seconds: float, later: bool = False) -> None:
        if self._thread is None:
            self._begin()
        with self._lock:
            await self._memory.mark(name, text, seconds, later)
            self._note(self._marks, (name,))

    async def close(self) -> None:
        if self._thread is not None:
            self._ending.set()
            self._changed.set()
            await asyncio.to_thread(self._thread.join, _LAST_WAIT)

    def _note(self, changed: set[str], names: Iterable[str]) -> None:
        if not changed:  # else the thread knows that there is something to write
            self._changed.set()
        changed.update(names)

    def _begin(self) -> None:
        """The first request finds what was kept, if the file can be read soon."""
        self._loop = asyncio.get_running_loop()
        # Nobody waits for it at the end: a file may hang.
        self._thread = threading.Thread(target=self._run, name="state file", daemon=True)
        self._thread.start()
        self._read.wait(_FIRST_WAIT)

    # In the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        rows, loaded, ending = Rows(self._path), False, False
        while not ending:
            ending = self._ending.is_set()
            try:
                if not loaded:
                    self._restore(*rows.load(self._clock()))
                    loaded = True
                self._write(rows)
                self._told("")
            except (sqlite3.Error, OSError, ValueError) as error:
                self._told(getattr(error, "strerror", None) or str(error))
            self._read.set()
            if not self._failed and not ending:
                self._changed.wait()
            self._ending.wait(_AGAIN if self._failed else _EVERY)
        rows.close()

    def _told(self, failure: str) -> None:
        """Say once that the file fails, and once that it is written again."""
        if failure and not self._failed:
            text = f"the state file {self._path} cannot be used ({failure})"
            self._tell(f"{text}: limits and budgets are kept in memory meanwhile")
        elif self._failed and not failure:
            self._tell(f"the state file {self._path} is written again")
        self._failed = bool(failure)

    def _tell(self, text: str) -> None:
        with suppress(RuntimeError):  # who would hear it is gone
            self._loop.call_soon_threadsafe(self._say, text)

    def _restore(self, counters: Sequence[CounterRow], marks: Sequence[MarkRow]) -> None:
        parts = [
            {int(bucket): amount for bucket, amount in orjson.loads(row.parts).items()}
            for row in counters
        ]
        with self._lock:
            now, kept = self._clock(), self._memory.counters
            for row, own in zip(counters, parts, strict=True):
                counter = kept.kept.get(row.name) or Counter(row.life)
                counter.ends = max(counter.ends, row.ends)
                counter.total += row.total
                counter.written += row.total
                counter.merge(own)
                kept.put(row.name, counter, now)
            for name, text, until in marks:
                self._memory.remember(name, Mark(text, until), later=True)

    def _write(self, rows: Rows) -> None:
        counters, marks = self._changes()
        if not (counters or marks):
            return
        saved = False
        try:
            rows.save(counters, marks, self._clock())
            saved = True
        finally:
            with self._lock:
                self._wrote(counters, marks, saved)

    def _changes(self) -> tuple[Sequence[CounterRow], Sequence[MarkRow]]:
        """All that was not written yet."""
        with self._lock:
            self._changed.clear()
            names, self._counters = self._counters, set()
            known, self._marks = self._marks, set()
            counters, marks = self._memory.counters.kept, self._memory.marks.kept
            changed = [(name, counters[name]) for name in names if name in counters]
            return (
                [_row(name, counter) for name, counter in changed if _lasts(counter)],
                [MarkRow(name, *marks[name]) for name in known if name in marks],
            )

    def _wrote(self, counters: Sequence[CounterRow], marks: Sequence[MarkRow], saved: bool) -> None:
        if not saved:
            self._counters.update(row.name for row in counters)
            self._marks.update(row.name for row in marks)
            return
        kept = self._memory.counters.kept
        for row in counters:
            if row.name in kept:
                kept[row.name].written += row.total


def _lasts(counter: Counter) -> bool:
    """Whether there is more of it than calls that are open, which end with the process."""
    return counter.life <= _SHORT or counter.total != counter.written


def _row(name: str, counter: Counter) -> CounterRow:
    parts = {str(bucket): amount for bucket, amount in counter.parts.items()}
    short = counter.life <= _SHORT
    text = orjson.dumps(parts if short else {}).decode()
    return CounterRow(name, counter.life, counter.total - counter.written, text, counter.ends)
