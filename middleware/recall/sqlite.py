"""Memories in one SQLite file: they survive a restart, and the workers of a machine share them."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from middleware.recall import said
from middleware.recall.store import CANDIDATES, Entry, Limits, StoreFailure

_VERSION = 1
"""Another number empties the file: to be raised whenever `Memory` changes."""
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS memory (
    key BLOB NOT NULL, digest BLOB NOT NULL, at INTEGER NOT NULL, value BLOB NOT NULL,
    UNIQUE (key, digest)
);
CREATE INDEX IF NOT EXISTS memory_at ON memory (at);
PRAGMA user_version = {_VERSION};
"""
_FIND = f"""
SELECT digest, value FROM memory WHERE key = ? AND at >= ?
ORDER BY at DESC, rowid DESC LIMIT {CANDIDATES}
"""
_PICK = "SELECT value FROM memory WHERE key = ? AND digest = ? AND at >= ?"
_KEEP = """
INSERT INTO memory (key, digest, at, value) VALUES (?, ?, ?, ?)
ON CONFLICT (key, digest) DO UPDATE SET at = excluded.at
"""
_TOUCH = "UPDATE memory SET at = ? WHERE key = ? AND at < ?"
_OLDEST = "DELETE FROM memory WHERE rowid IN (SELECT rowid FROM memory ORDER BY at LIMIT ?)"
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PAUSES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""Another worker is writing: seconds before each further attempt, while other requests run."""
_TIDY_EVERY = 32
_TIDIED = 4 * _TIDY_EVERY
"""How many go at once when there are too many: more than came since."""
_RETRY_OPEN = 5.0


class SqliteStore:
    """Opened on first use, so that each worker has its own connection."""

    def __init__(
        self, path: Path, limits: Limits | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._limits = limits or Limits()
        self._clock = clock
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._failed_at: float | None = None
        self._writes = 0

    def find(self, key: bytes) -> Sequence[bytes]:
        rows = self._read(_FIND, (key, self._oldest()))
        # SQLite does not notice a flipped bit in a value; an upstream would, in a signature.
        return [value for digest, value in rows if digest == said.identity(value)]

    def pick(self, key: bytes, identity: bytes) -> bytes | None:
        rows = self._read(_PICK, (key, identity, self._oldest()))
        return next((value for (value,) in rows if identity == said.identity(value)), None)

    def _read(self, query: str, parameters: tuple[bytes | int, ...]) -> list[tuple[bytes, ...]]:
        connection = self._opened()
        try:
            return connection.execute(query, parameters).fetchall()
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _oldest(self) -> int:
        return self._now() - round(self._limits.max_age * 1000)

    async def keep(self, entry: Entry, used: Sequence[bytes]) -> None:
        for pause in _PAUSES:
            if self._keep_now(entry, used):
                return
            await asyncio.sleep(pause)
        raise StoreFailure("the recall store is locked by another process")

    def _keep_now(self, entry: Entry, used: Sequence[bytes]) -> bool:
        """Write all of it or nothing; False while another process writes."""
        if self._connection is not None and self._inode != _inode(self._path):
            self.close()  # deleted or replaced: what we write there nobody would find again
        connection = self._opened()
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._write(connection, entry, used)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            _roll_back(connection)
            if _code(error) in _BUSY:
                return False
            raise self._failure(error) from error
        return True

    def _write(self, connection: sqlite3.Connection, entry: Entry, used: Sequence[bytes]) -> None:
        now, limits = self._now(), self._limits
        # Writing the time of every use would double the writes; a tenth of the age is exact enough.
        stale = now - round(limits.max_age * 100)
        connection.executemany(_TOUCH, [(now, key, stale) for key in used])
        if len(entry.value) <= limits.max_entry:
            row = (entry.key, said.identity(entry.value), now, entry.value)
            self._insert(connection, row)
        self._writes += 1
        if self._writes % _TIDY_EVERY == 0:
            self._tidy(connection)

    def _insert(self, connection: sqlite3.Connection, row: tuple[bytes, bytes, int, bytes]) -> None:
        try:
            connection.execute(_KEEP, row)
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_FULL or not connection.in_transaction:
                raise
            connection.execute(_OLDEST, (_TIDIED,))
            connection.execute(_KEEP, row)

    def _tidy(self, connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM memory WHERE at < ?", (self._oldest(),))
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        if (pages - free) * size > self._limits.max_bytes:
            connection.execute(_OLDEST, (_TIDIED,))

    def _now(self) -> int:
        return round(self._clock() * 1000)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None:
            return self._connection
        if self._failed_at is not None and self._clock() - self._failed_at < _RETRY_OPEN:
            raise StoreFailure("the recall store could not be opened")
        try:
            self._connection = self._open()
        except (sqlite3.Error, OSError) as error:
            self._failed_at = self._clock()
            raise self._begin_anew() if _code(error) in _BROKEN else _unopened(error) from error
        self._inode = _inode(self._path)
        self._failed_at = None
        return self._connection

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # It holds what was said: readable by its owner only. SQLite gives its side files the same.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self._path, timeout=0, isolation_level=None)
        try:
            self._prepare(connection)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # A power cut may cost memories, never a request: not worth waiting for the disk.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA busy_timeout = 200")
        connection.execute("PRAGMA journal_mode = WAL")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        most = self._limits.max_bytes // size + self._limits.max_bytes // size // 4 + 16
        connection.execute(f"PRAGMA max_page_count = {most}")
        connection.execute("PRAGMA journal_size_limit = 4194304")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            connection.executescript(f"DROP TABLE IF EXISTS memory; {_SCHEMA}")
        connection.execute("PRAGMA busy_timeout = 0")

    def _failure(self, error: sqlite3.Error) -> StoreFailure:
        if _code(error) not in _BUSY:
            self.close()
        if _code(error) in _BROKEN:
            return self._begin_anew()
        return StoreFailure(f"the recall store failed: {error}")

    def _begin_anew(self) -> StoreFailure:
        """A broken file is worth nothing: the next request starts an empty one."""
        self._failed_at = None
        for name in (self._path, f"{self._path}-wal", f"{self._path}-shm"):
            try:
                os.unlink(name)
            except FileNotFoundError:
                continue
            except OSError as error:
                return _unopened(error)
        return StoreFailure("the recall store was damaged and begins anew")

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.rollback()


def _code(error: Exception) -> int:
    """The error's primary code, without what SQLite adds in the higher bits."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _inode(path: Path) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _unopened(error: Exception) -> StoreFailure:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return StoreFailure(f"the recall store cannot be opened: {reason}")
