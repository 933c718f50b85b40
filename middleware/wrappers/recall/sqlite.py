"""Memories in one SQLite file: they survive a restart, and the workers of a machine share them."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from zlib import crc32

from middleware.wrappers.recall.absences import Absences
from middleware.wrappers.recall.fingerprint import identity_of
from middleware.wrappers.recall.ownership import MARK, foreign, remove
from middleware.wrappers.recall.store import Entry, Limits, Store, StoreFailure
from middleware.wrappers.recall.together import Together

_VERSION = 2
"""Another number empties the file: to be raised whenever `Memory` changes."""
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS memory (
    key BLOB PRIMARY KEY, digest BLOB NOT NULL, at INTEGER NOT NULL, value BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS memory_at ON memory (at);
PRAGMA user_version = {_VERSION};
"""
_GET = "SELECT digest, value FROM memory WHERE key = ? AND at >= ?"
_KEEP = """
INSERT INTO memory (key, digest, at, value) VALUES (?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET digest = excluded.digest, at = excluded.at, value = excluded.value
"""
_TOUCH = "UPDATE memory SET at = ? WHERE key = ? AND at BETWEEN ? AND ?"
_OLDEST = "SELECT rowid, length(value) FROM memory WHERE at < ? ORDER BY at LIMIT 256"
_EVER = 1 << 62
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_HARMLESS = _BUSY | {sqlite3.SQLITE_FULL}
_BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PAUSES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""Another worker is writing: seconds before each further attempt, while other requests run."""
_TIDY_EVERY, _TIDY_SHARE = 32, 512
"""Writes between two tidyings; fewer where each is more than such a share of the room."""
_SLICE = 1 << 20
"""Bytes that are deleted in one go: others wait for it to write."""
_TIDY_SECONDS, _REST = 1.0, 0.01
"""How long one tidying takes at most, and how long others may write between two slices."""
_TIDY_WAITS = 500
"""Milliseconds it waits for those that write: under load somebody always does."""
_RETRY_OPEN = 5.0


class SqliteStore:
    """Opened on first use, so that each worker has its own connection."""

    distant = False

    def __init__(
        self,
        path: Path,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
        own_folder: bool = False,
    ) -> None:
        self._path = path
        self._limits = limits or Limits()
        self._clock = clock
        self._own_folder = own_folder
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._failed_at: float | None = None
        self._until_tidy = 0
        """Bytes that may still be written before."""
        self._tidying = False
        self._rounds: SqliteStore | None = None
        self._absences = Absences(path)
        self._together = Together(self._keep_now)

    def rounds(self) -> Store:
        if self._rounds is None:
            path = self._path.with_stem(f"{self._path.stem}-rounds")
            self._rounds = SqliteStore(path, self._limits, self._clock, self._own_folder)
        return self._rounds

    def get(self, key: bytes) -> bytes | None:
        connection = self._connection or self._opened()
        if self._absences.has(key):
            return None
        try:
            rows = connection.execute(_GET, (key, self._oldest())).fetchall()
        except sqlite3.Error as error:
            raise self._failure(error) from error
        if not rows:
            self._absences.add(key)
        # SQLite does not notice a flipped bit in a value; an upstream would, in a signature.
        return next((value for check, value in rows if _is_whole(value, check)), None)

    async def near(self, keys: Sequence[bytes]) -> Store:
        return self

    def _oldest(self) -> int:
        return self._now() - round(self._limits.max_age * 1000)

    async def keep(self, entries: Sequence[Entry], used: Sequence[bytes]) -> None:
        kept = await self._together.join(entries, used)
        for pause in _PAUSES:
            if kept:
                break
            await asyncio.sleep(pause)
            kept = self._keep_now(entries, used)
        if not kept:
            raise StoreFailure("the recall store is locked by another process")
        self._tidy_sometimes(entries)  # not before: who opens the file would find it locked

    def _keep_now(self, entries: Sequence[Entry], used: Sequence[bytes]) -> bool:
        """Write all of it or nothing; False: it may succeed if it is tried again."""
        if self._connection is not None and self._inode != _inode(self._path):
            self.close()  # deleted or replaced: what we write there nobody would find again
        connection = self._opened()
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._write(connection, entries, used)
            connection.execute("COMMIT")
            self._absences.doubt()
        except sqlite3.Error as error:
            connection.rollback()
            code = _code(error)
            full = code == sqlite3.SQLITE_FULL
            if code in _BUSY or (full and self._make_room(connection, entries)):
                return False
            raise self._failure(error) from error
        return True

    def _make_room(self, connection: sqlite3.Connection, entries: Sequence[Entry]) -> bool:
        """Delete the oldest, as much as is to be written; False: nothing could be deleted.

        In a transaction of its own: SQLite takes back all of the one in which a file became full.
        """
        limits, freed = self._limits, 0
        wanted = sum(len(value) for _, value in entries if len(value) <= limits.max_entry)
        if wanted > limits.max_bytes:
            return False  # what never fits drives nothing out
        wanted += _SLICE // 8
        try:
            connection.execute("BEGIN IMMEDIATE")
            while freed < wanted and (more := _forget(connection, _EVER)):
                freed += more
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            connection.rollback()
            return _code(error) in _BUSY
        return freed > 0

    def _write(
        self, connection: sqlite3.Connection, entries: Sequence[Entry], used: Sequence[bytes]
    ) -> None:
        now, oldest, limits = self._now(), self._oldest(), self._limits
        if used:
            # The time of every use would double the writes; a tenth of the age is exact enough.
            stale = now - round(limits.max_age * 100)
            connection.executemany(_TOUCH, [(now, key, oldest, stale) for key in used])
        small = [one for one in entries if len(one[1]) <= limits.max_entry]
        rows = [(key, _check_of(value), now, value) for key, value in small]
        connection.executemany(_KEEP, rows)

    def _tidy_sometimes(self, entries: Sequence[Entry]) -> None:
        least = self._limits.max_bytes // _TIDY_SHARE
        self._until_tidy -= max(least, sum([len(value) for _, value in entries]))
        if self._until_tidy <= 0 and not self._tidying:
            self._tidying, self._until_tidy = True, least * _TIDY_EVERY
            asyncio.get_running_loop().run_in_executor(None, self._tidy)

    def _tidy(self) -> None:
        """Delete what is too old or too much: beside the requests, a slice at a time."""
        try:
            with closing(_connected(self._path)) as connection:
                self._tidied(connection)
        except sqlite3.Error:
            pass  # who reads or writes next says what is wrong
        finally:
            self._tidying = False

    def _tidied(self, connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA busy_timeout = {_TIDY_WAITS}")  # first: all others may wait
        connection.execute("PRAGMA synchronous = OFF")
        ends = time.monotonic() + _TIDY_SECONDS
        while time.monotonic() < ends:
            before = _EVER if self._too_much(connection) else self._oldest()
            connection.execute("BEGIN IMMEDIATE")
            freed = _forget(connection, before)
            connection.execute("COMMIT")
            if not freed:
                return
            time.sleep(_REST)

    def _too_much(self, connection: sqlite3.Connection) -> bool:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        return bool((pages - free) * size > self._limits.max_bytes)

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
        folder = self._path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # It holds what was said: for its owner only. SQLite gives its side files the same.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        if why := foreign(self._path):
            raise OSError(0, f"{self._path} {why}")
        with suppress(OSError):  # of another owner, who says who may read it
            os.chmod(self._path, 0o600)
            if self._own_folder:
                os.chmod(folder, 0o700)
        connection, usable = _connected(self._path), False
        try:
            usable = self._prepare(connection)
        finally:
            if not usable:
                connection.close()
        if usable:
            return connection
        # Dropping its tables would take long.
        remove(self._path)
        return self._open()

    def _prepare(self, connection: sqlite3.Connection) -> bool:
        """Make it ours; False: it is a file of another version."""
        # First, as each of those that follow may find the file locked by who closes it.
        connection.execute("PRAGMA busy_timeout = 50")
        # A power cut may cost memories, never a request: not worth waiting for the disk.
        connection.execute("PRAGMA synchronous = OFF")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, _VERSION):
            return False
        if version == 0:
            # Before the log of changes begins, so that the mark stands in the file itself.
            connection.execute(f"PRAGMA application_id = {MARK}")
        connection.execute("PRAGMA journal_mode = WAL")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        most = self._limits.max_bytes // size + self._limits.max_bytes // size // 4 + 16
        connection.execute(f"PRAGMA max_page_count = {most}")
        connection.execute("PRAGMA journal_size_limit = 4194304")
        if version == 0:
            connection.executescript(_SCHEMA)
        connection.execute("PRAGMA busy_timeout = 0")
        return True

    def _failure(self, error: sqlite3.Error) -> StoreFailure:
        if _code(error) not in _HARMLESS:
            self.close()
        if _code(error) in _BROKEN:
            return self._begin_anew()
        return StoreFailure(f"the recall store failed: {error}")

    def _begin_anew(self) -> StoreFailure:
        """A broken file of ours is worth nothing: the next request starts an empty one."""
        self._failed_at = None
        if why := foreign(self._path):
            return StoreFailure(f"the recall store cannot be opened: {self._path} {why}")
        try:
            remove(self._path)
        except OSError as error:
            return _unopened(error)
        return StoreFailure("the recall store was damaged and begins anew")

    async def settle(self) -> None:
        """Nothing waits longer than who keeps it."""

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._absences.forget()
        if connection is not None:
            connection.close()
        if self._rounds is not None:
            self._rounds.close()


def _check_of(value: bytes) -> bytes:
    return crc32(value).to_bytes(4)


def _is_whole(value: bytes, check: object) -> bool:
    """Rows of versions before have a digest, which takes longer than all else of a long value."""
    if not isinstance(check, bytes):  # a flipped bit
        return False
    return check == (_check_of(value) if len(check) == 4 else identity_of(value))


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=0, isolation_level=None)


def _forget(connection: sqlite3.Connection, before: int) -> int:
    """Delete the oldest entries, a slice of them; return the bytes that are free now."""
    rows, freed = [], 0
    for row, size in connection.execute(_OLDEST, (before,)):
        rows.append((row,))
        freed += size + 100
        if freed >= _SLICE:
            break
    connection.executemany("DELETE FROM memory WHERE rowid = ?", rows)
    return freed


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
