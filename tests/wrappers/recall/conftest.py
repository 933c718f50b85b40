"""Every kind of store, in memory and in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from middleware.wrappers.recall import MemoryStore, SqliteStore
from tests.wrappers.recall.stores import Made


@pytest.fixture(params=["memory", "sqlite"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    if request.param == "memory":
        return MemoryStore
    return lambda limits, clock: SqliteStore(tmp_path / "deep" / "recall.sqlite3", limits, clock)
