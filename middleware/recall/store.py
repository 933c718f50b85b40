"""Where memories are kept: the interface, its bounds, and a store that ends with the process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

CANDIDATES = 8
"""Answers to the very same conversation that are told apart by their ids."""


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

    def find(self, key: bytes) -> Sequence[bytes]:
        """Return what is kept under a key, newest first."""
        ...

    async def keep(self, entries: Sequence[Entry], used: Sequence[bytes]) -> None:
        """Add entries; what `used` names was needed again and stays young."""
        ...

    def close(self) -> None: ...


class MemoryStore:
    """Lost with the process, and known to it alone."""

    def __init__(
        self, limits: Limits | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._limits = limits or Limits()
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[float, tuple[bytes, ...]]] = OrderedDict()
        """Least recently needed first."""
        self._size = 0

    def find(self, key: bytes) -> Sequence[bytes]:
        at, values = self._kept.get(key, (0.0, ()))
        return values if self._clock() - at <= self._limits.max_age else ()

    async def keep(self, entries: Sequence[Entry], used: Sequence[bytes]) -> None:
        for key in used:
            if key in self._kept:
                self._put(key, self._kept[key][1])
        for key, value in entries:
            if len(value) <= self._limits.max_entry:
                others = [other for other in self.find(key) if other != value]
                self._put(key, (value, *others[: CANDIDATES - 1]))
        self._shrink()

    def _put(self, key: bytes, values: tuple[bytes, ...]) -> None:
        self._drop(key)
        self._kept[key] = (self._clock(), values)
        self._size += _size(key, values)

    def _drop(self, key: bytes) -> None:
        if key in self._kept:
            self._size -= _size(key, self._kept.pop(key)[1])

    def _shrink(self) -> None:
        oldest = self._clock() - self._limits.max_age
        while self._kept:
            key, (at, _) = next(iter(self._kept.items()))
            if self._size <= self._limits.max_bytes and at >= oldest:
                return
            self._drop(key)

    def close(self) -> None:
        self._kept.clear()
        self._size = 0


def _size(key: bytes, values: tuple[bytes, ...]) -> int:
    return sum(len(value) + 2 * len(key) for value in values)
