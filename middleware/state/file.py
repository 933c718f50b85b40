"""`FileState`: counted in memory, written behind to an SQLite file, read from it at the start.

Requests never wait for the file: a thread reads and writes it, at most half a second behind.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import orjson

from middleware.state.claims import OwnClaims
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


_Found = tuple[Sequence[tuple[CounterRow, Mapping[int, float]]], Sequence[MarkRow]]
"""Counters of a file, each with its parts, and marks."""


class FileState:
    home: Home = "file"

    def __init__(
        self, path: Path, say: Callable[[str], None], clock: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._say = say
        self._clock = clock
        self._memory = MemoryState(clock, changed=self._note)
        """Changed by the loop alone: the thread takes copies, each of them whole."""
        self._counters: dict[str, Counter] = {}
        self._marks: dict[str, None] = {}
        """What has changed, by name. Who changes says so after it; who writes takes it out before
        it is copied: so nothing is missed.
        """
        self._found: _Found | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        events = (threading.Event() for _ in range(4))
        self._read, self._restored, self._changed, self._ending = events
        self._failed = False

    @property
    def well(self) -> bool:
        return not self._failed

    @property
    def marked(self) -> bool:
        return self._thread is None or self._memory.marked

    def claims(self, request: str) -> OwnClaims:
        if self._thread is None:
            self._begin()
        return OwnClaims(self._memory.counters)

    async def take(self, request: str, holds: Sequence[Hold]) -> Taken:
        self._begin()
        return await self._memory.take(request, holds)

    async def settle(self, request: str, amounts: Mapping[str, float]) -> None:
        self._begin()
        await self._memory.settle(request, amounts)

    async def sums(self, counters: Sequence[str]) -> Sequence[float]:
        self._begin()
        return await self._memory.sums(counters)

    async def read(self, names: Sequence[str]) -> Sequence[Mark | None]:
        self._begin()
        return self._memory.known(names)

    async def mark(self, name: str, text: str, seconds: float, later: bool = False) -> None:
        self._begin()
        await self._memory.mark(name, text, seconds, later)
        self._marks[name] = None
        self._changed.set()

    async def close(self) -> None:
        if self._thread is not None:
            self._ending.set()
            self._changed.set()
            await asyncio.to_thread(self._thread.join, _LAST_WAIT)

    def _note(self, counter: Counter) -> None:
        self._counters[counter.name] = counter
        self._changed.set()

    def _begin(self) -> None:
        """The first request finds what was kept, if the file can be read soon."""
        if self._thread is not None:
            return
        self._loop = asyncio.get_running_loop()
        # Nobody waits for it at the end: a file may hang.
        self._thread = threading.Thread(target=self._run, name="state file", daemon=True)
        self._thread.start()
        self._read.wait(_FIRST_WAIT)
        self._restore()

    def _restore(self) -> None:
        """Add what was found in the file to what was counted since."""
        found, self._found = self._found, None
        if found is None:
            return
        now, kept = self._clock(), self._memory.counters
        for row, parts in found[0]:
            counter = kept.kept.get(row.name) or Counter(row.name, row.life, noted=False)
            counter.ends = max(counter.ends, row.ends)
            counter.total += row.total
            counter.written += row.total
            counter.merge(parts)
            kept.put(row.name, counter, now)
        for name, text, until in found[1]:
            self._memory.remember(name, Mark(text, until), later=True)
        self._restored.set()

    # In the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        rows, loaded, ending = Rows(self._path), False, False
        while not ending:
            ending = self._ending.is_set()
            try:
                if not loaded:
                    self._find(*rows.load(self._clock()))
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

    def _find(self, counters: Sequence[CounterRow], marks: Sequence[MarkRow]) -> None:
        """Let the loop have it before anything is written."""
        self._found = [(row, _parts_of(row)) for row in counters], marks
        self._read.set()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._restore)
            self._restored.wait(_LAST_WAIT)

    def _write(self, rows: Rows) -> None:
        self._changed.clear()
        counters = [(counter, _row(counter)) for counter in self._changed_counters()]
        marks = self._changed_marks()
        if not (counters or marks):
            return
        saved = False
        try:
            rows.save([row for _, row in counters], marks, self._clock())
            saved = True
        finally:
            for counter, row in counters:
                if saved:
                    counter.written += row.total
                else:
                    self._counters.setdefault(counter.name, counter)
            if not saved:
                self._marks.update(dict.fromkeys(row.name for row in marks))

    def _changed_counters(self) -> Iterator[Counter]:
        while self._counters:
            _, counter = self._counters.popitem()
            counter.noted = False
            if _lasts(counter):
                yield counter

    def _changed_marks(self) -> Sequence[MarkRow]:
        names, marks = [*self._marks], self._memory.marks.kept
        for name in names:
            del self._marks[name]
        return [MarkRow(name, *marks[name]) for name in names if name in marks]


def _lasts(counter: Counter) -> bool:
    """Whether there is more of it than calls that are open, which end with the process."""
    return counter.life <= _SHORT or counter.total != counter.written


def _row(counter: Counter) -> CounterRow:
    parts = {str(bucket): amount for bucket, amount in counter.parts.items()}
    text = orjson.dumps(parts if counter.life <= _SHORT else {}).decode()
    added = counter.total - counter.written
    return CounterRow(counter.name, counter.life, added, text, counter.ends)


def _parts_of(row: CounterRow) -> Mapping[int, float]:
    return {int(bucket): amount for bucket, amount in orjson.loads(row.parts).items()}
