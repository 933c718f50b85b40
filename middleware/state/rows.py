"""The SQLite file of `FileState`: blocks, and raises `sqlite3.Error` and `OSError`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_MARK = int.from_bytes(b"Utst")
"""Says in the file's head that it is ours: no other file is ever written to."""
_BUSY_SECONDS = 1.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS counter (
    name TEXT PRIMARY KEY, life REAL NOT NULL, total REAL NOT NULL, parts TEXT NOT NULL,
    ends REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS mark (
    name TEXT PRIMARY KEY, text TEXT NOT NULL, until REAL NOT NULL
) WITHOUT ROWID;
"""
# Another process of this config may be ending while this one begins: totals are added up.
_COUNT = """
INSERT INTO counter (name, life, total, parts, ends) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET life = excluded.life, parts = excluded.parts,
    total = total + excluded.total, ends = max(ends, excluded.ends)
"""
_REMEMBER = "INSERT OR REPLACE INTO mark (name, text, until) VALUES (?, ?, ?)"
_FORGET = ("DELETE FROM counter WHERE ends <= ?", "DELETE FROM mark WHERE until <= ?")
_FORGET_EVERY = 60.0


class CounterRow(NamedTuple):
    name: str
    life: float
    total: float
    """What is to be added, when it is written."""
    parts: str
    """JSON: bucket → amount."""
    ends: float


class MarkRow(NamedTuple):
    name: str
    text: str
    until: float


class Rows:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._forgot = 0.0

    def load(self, now: float) -> tuple[Sequence[CounterRow], Sequence[MarkRow]]:
        """What counts still; nothing is made where there is no file."""
        if not self._path.exists():
            return (), ()
        connection = self._opened()
        counters = connection.execute("SELECT * FROM counter WHERE ends > ?", (now,))
        marks = connection.execute("SELECT * FROM mark WHERE until > ?", (now,))
        return [*map(CounterRow._make, counters)], [*map(MarkRow._make, marks)]

    def save(self, counters: Sequence[CounterRow], marks: Sequence[MarkRow], now: float) -> None:
        connection = self._opened()
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            if now - self._forgot > _FORGET_EVERY:
                for statement in _FORGET:
                    connection.execute(statement, (now,))
                self._forgot = now
            connection.executemany(_COUNT, counters)
            connection.executemany(_REMEMBER, marks)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None or not self._path.exists():
            self.close()
            self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        connection, usable = self._connected(), False
        try:
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if mark != _MARK:
                if mark or tables:
                    raise OSError(0, "is no file of the gateway's state")
                connection.execute(f"PRAGMA application_id = {_MARK}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(_SCHEMA)
            usable = True
        finally:
            if not usable:
                connection.close()
        return connection

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
