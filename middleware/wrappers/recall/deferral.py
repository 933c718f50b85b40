"""What is kept now and written soon, with what others keep until then.

Of an entry's cost most is what a transaction has once, so entries of some milliseconds are one.
Until then they are found here: only who alone asks a file may defer what goes there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from middleware.wrappers.recall.store import Entry, NearStore, Store, StoreFailure

_DELAY = 0.01
"""Seconds; what a process that is killed may lose."""
_LONGEST_DELAY = 5 * _DELAY
"""After so many another gateway on the same file will have written what it keeps."""
_MOST = 1 << 20
"""Bytes that wait at most; the loop waits while they are written."""
_TRIES = 3


class DeferredStore:
    """What has come to wait is written in the order it came, and before what is written at once."""

    distant = False

    def __init__(self, store: Store, max_bytes: int) -> None:
        self._store = store
        self._room = min(_MOST, max_bytes // 8)
        self._waiting: dict[bytes, Entry] = {}
        self._used: list[bytes] = []
        self._size = 0
        self._writing: Mapping[bytes, Entry] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_sure = False
        """What was written last succeeded; else each is written, and told of, before its answer
        ends.
        """

    def rounds(self) -> Store:
        return self._store.rounds()

    def get(self, key: bytes) -> bytes | None:
        entry = self._waiting.get(key) or self._writing.get(key)
        return self._store.get(key) if entry is None else entry.value

    async def near(self, keys: Sequence[bytes]) -> Store:
        found = {key: self.get(key) for key in keys}
        missing = [key for key, value in found.items() if value is None]
        if missing:
            await asyncio.sleep(_LONGEST_DELAY)
            found |= {key: self.get(key) for key in missing}
        return NearStore(self, found)

    async def keep(self, entries: Sequence[Entry], used: Sequence[bytes]) -> None:
        size = 0
        for _, value in entries:
            size += len(value)
        # What is empty stands for what was deleted: that must not come back.
        if not self._is_sure or not 0 < size <= self._room:
            await self._keep_at_once(entries, used)
            return
        if not self._waiting:
            self._wait()
        for entry in entries:
            self._waiting[entry.key] = entry
        self._used += used
        self._size += size
        if self._size > self._room:
            await self.settle()

    async def _keep_at_once(self, entries: Sequence[Entry], used: Sequence[bytes]) -> None:
        await self.settle()
        self._is_sure = False
        await self._store.keep(entries, used)
        self._is_sure = True

    async def settle(self) -> None:
        """Write what waits now; what comes meanwhile is not waited for."""
        for _ in range(1 + bool(self._writing)):
            if self._waiting or self._writing:
                await asyncio.shield(self._begin())  # who is cut off takes nobody with it

    def _wait(self) -> None:
        asyncio.get_running_loop().call_later(_DELAY, self._ring)

    def _ring(self) -> None:
        """It is time to write, unless others are still being written."""
        if self._writing:
            self._wait()
        else:
            self._begin()

    def _begin(self) -> asyncio.Task[None]:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._write())
        return self._task

    async def _write(self) -> None:
        if not self._waiting:
            return
        used, sure = self._used, False
        self._writing, self._waiting, self._used, self._size = self._waiting, {}, [], 0
        try:
            sure = await self._written([*self._writing.values()], used)
        finally:
            self._is_sure, self._writing = sure, {}

    async def _written(self, entries: Sequence[Entry], used: Sequence[bytes]) -> bool:
        """Whether it is; nobody waits for it, so it may be tried again."""
        for _ in range(_TRIES):
            try:
                await self._store.keep(entries, used)
            except StoreFailure:
                self._is_sure = False  # what comes now waits for its own, and can be told
                continue
            return True
        return False

    def close(self) -> None:
        self._store.close()
