"""Stores with a clock of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from middleware.wrappers.recall import Limits, Store
from middleware.wrappers.recall.store import Entry


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


Made = Callable[[Limits, Clock], Store]


def keep(store: Store, *entries: tuple[bytes, bytes], used: tuple[bytes, ...] = ()) -> None:
    for entry in entries:
        asyncio.run(store.keep([Entry(*entry)], used))
