"""Where memories are kept: the interface, its bounds, and a store that ends with the process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

_MOST_DROPPED = 256
"""Old entries that go at once: a million of them must not hold everybody up."""


class StoreFailure(Exception):
    """The store cannot be used now; what went wrong, in words for a receipt."""


@dataclass(frozen=True, slots=True)
class Limits:
    max_bytes: int = 256 << 20
    max_age: float = 7 * 86400
    """Seconds since a memory was last needed."""
    max_entry: int = 4 << 20


class Entry(NamedTuple):
    key: bytes
    value: bytes


class Store(Protocol):
    """Every method may raise `StoreFailure`, and nothing else."""

    @property
    def distant(self) -> bool:
        """What it has must be brought near before it can be got."""

    def rounds(self) -> Store:
        """Where hidden rounds are kept: of this kind, with bounds of its own; always the same."""

    async def near(self, keys: Sequence[bytes]) -> Store:
        """A store that has what lies under these keys, and what that leads to."""

    def get(self, key: bytes) -> bytes | None:
        """Return what is kept under a key."""

    async def keep(self, entries: Sequence[Entry], used: Sequence[bytes]) -> None:
        """Put entries under their keys; what lies under `used` was needed again and stays young."""

    async def settle(self) -> None:
        """Write what was kept and waits."""

    def close(self) -> None: ...


class MemoryStore:
    """Lost with the process, and known to it alone."""

    distant = False

    def __init__(
        self, limits: Limits | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._limits = limits or Limits()
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[float, bytes]] = OrderedDict()
        """Key → when it was last needed, and the value; least recently needed first."""
        self._size = 0
        self._rounds: MemoryStore | None = None

    def rounds(self) -> Store:
        self._rounds = self._rounds or MemoryStore(self._limits, self._clock)
        return self._rounds

    def get(self, key: bytes) -> bytes | None:
        at, value = self._kept.get(key, (0.0, b""))
        return value if value and self._clock() - at <= self._limits.max_age else None

    async def keep(self, entries: Sequence[Entry], used: Sequence[bytes]) -> None:
        for key in used:
            if (value := self.get(key)) is not None:
                self._put(key, value)
        for key, value in entries:
            if len(value) <= self._limits.max_entry:
                self._put(key, value)
        self._shrink()

    def _put(self, key: bytes, value: bytes) -> None:
        self._drop(key)
        self._kept[key] = (self._clock(), value)
        self._size += _size(value)

    def _drop(self, key: bytes) -> None:
        if key in self._kept:
            self._size -= _size(self._kept.pop(key)[1])

    def _shrink(self) -> None:
        oldest, dropped = self._clock() - self._limits.max_age, 0
        while self._kept:
            key, (at, _) = next(iter(self._kept.items()))
            if self._size <= self._limits.max_bytes and (at >= oldest or dropped >= _MOST_DROPPED):
                return
            self._drop(key)
            dropped += 1

    async def near(self, keys: Sequence[bytes]) -> Store:
        return self

    async def settle(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        self._kept.clear()
        self._size = 0
        if self._rounds is not None:
            self._rounds.close()


class NearStore:
    """What one request may need, brought here."""

    distant = False

    def __init__(
        self, store: Store, found: Mapping[bytes, bytes | None], failure: str = ""
    ) -> None:
        self._found = found
        self._failure = failure
        self.keep = store.keep
        self.near = store.near
        self.settle = store.settle
        self.rounds = store.rounds
        self.close = store.close

    def get(self, key: bytes) -> bytes | None:
        if self._failure:
            raise StoreFailure(self._failure)
        return self._found.get(key)


def _size(value: bytes) -> int:
    return len(value) + 100
