"""Memories in the Redis of [state]: whichever gateway takes a turn has them."""

from __future__ import annotations

from collections.abc import Sequence

from middleware.state.connection import PREFIX, RedisConnection
from middleware.state.scripts import KEEP
from middleware.wrappers.recall.memory import loaded
from middleware.wrappers.recall.store import Entry, Limits, NearStore, Store, StoreFailure

_VERSION = 1
"""Another number begins anew: to be raised whenever `Memory` changes."""
_BOOKS = (b"ages", b"sizes", b"whole")
_KEY = 16
_ROUNDS = 4
"""How often is asked at most: keys, the memories they name, those that these name."""
_AWAY = "Redis, where memories are kept, is away"


class RedisStore:
    distant = True

    def __init__(
        self, connection: RedisConnection, limits: Limits | None = None, name: str = "recall"
    ) -> None:
        self._connection = connection
        self._space = f"{PREFIX}{name}{_VERSION}:".encode()
        self._limits = limits or Limits()

    def rounds(self) -> Store:
        return RedisStore(self._connection, self._limits, "rounds")

    def get(self, key: bytes) -> bytes | None:
        """Nothing is here: see `near`."""
        return None

    async def near(self, keys: Sequence[bytes]) -> Store:
        """A store with what lies under keys, and all that this leads to."""
        found: dict[bytes, bytes] = {}
        wanted = set(keys)
        for _ in range(_ROUNDS):
            if not wanted:
                break
            names = sorted(wanted)
            values = await self._connection.get([self._space + name for name in names])
            if values is None:
                return NearStore(self, found, _AWAY)
            new = {name: value for name, value in zip(names, values, strict=True) if value}
            found |= new
            wanted = {_named(value) for value in new.values()} - found.keys() - {b""}
        return NearStore(self, found)

    async def keep(self, entries: Sequence[Entry], used: Sequence[bytes]) -> None:
        limits = self._limits
        small = [one for one in entries if len(one.value) <= limits.max_entry]
        names = [*_BOOKS, *(one.key for one in small), *used]
        keys = [self._space + name for name in names]
        oldest, life = self._connection.now() - limits.max_age, round(limits.max_age * 1000)
        values = [one.value for one in small]
        bounds = (repr(oldest), limits.max_bytes, max(1, life), len(small))
        if await self._connection.run(KEEP, keys, *bounds, *values) is None:
            raise StoreFailure(_AWAY)

    async def settle(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """The connection is of [state]."""


def _named(value: bytes) -> bytes:
    """The key of a memory that is named: by a key, or by the memory that came after it."""
    if len(value) == _KEY:
        return value
    memory = loaded(value) if value.startswith(b"{") else None
    return bytes.fromhex(memory.previous[1]) if memory and memory.previous else b""
