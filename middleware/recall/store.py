"""Where memories are kept: the interface, its bounds, and a store that ends with the process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from middleware.recall import said

CANDIDATES = 16
"""How many answers to one conversation are looked at to find the one that is meant."""

_SIBLINGS = 256
"""How many of them memory holds."""


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
        """Return what is kept under a key, newest first, not more than `CANDIDATES`."""
        ...

    def pick(self, key: bytes, identity: bytes) -> bytes | None:
        """Return the one that has this `said.identity`."""
        ...

    async def keep(self, entry: Entry, used: Sequence[bytes]) -> None:
        """Add an entry; what lies under the keys `used` was needed again and stays young."""
        ...

    def close(self) -> None: ...


class MemoryStore:
    """Lost with the process, and known to it alone."""

    def __init__(
        self, limits: Limits | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._limits = limits or Limits()
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[float, dict[bytes, bytes]]] = OrderedDict()
        """Key → when it was last needed, identity → value; least recently needed first."""
        self._size = 0

    def find(self, key: bytes) -> Sequence[bytes]:
        return list(self._young(key).values())[: -CANDIDATES - 1 : -1]

    def pick(self, key: bytes, identity: bytes) -> bytes | None:
        return self._young(key).get(identity)

    def _young(self, key: bytes) -> dict[bytes, bytes]:
        at, values = self._kept.get(key, (0.0, {}))
        return values if self._clock() - at <= self._limits.max_age else {}

    async def keep(self, entry: Entry, used: Sequence[bytes]) -> None:
        for key in used:
            self._put(key, {})
        if len(entry.value) <= self._limits.max_entry:
            self._put(entry.key, {said.identity(entry.value): entry.value})
        self._shrink()

    def _put(self, key: bytes, new: dict[bytes, bytes]) -> None:
        values = self._young(key)
        self._drop(key)
        for identity, value in new.items():
            values.pop(identity, None)
            values[identity] = value
        if len(values) > _SIBLINGS:
            del values[next(iter(values))]
        if values:
            self._kept[key] = (self._clock(), values)
            self._size += _size(values)

    def _drop(self, key: bytes) -> None:
        if key in self._kept:
            self._size -= _size(self._kept.pop(key)[1])

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


def _size(values: dict[bytes, bytes]) -> int:
    return sum(len(value) + 100 for value in values.values())
