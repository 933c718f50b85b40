"""The ledger in a file of SQLite."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

from middleware.accounts.ledger.book import CREATE, INDEX, LedgerAway
from middleware.accounts.ledger.rows import COLUMNS, Row

_PATIENCE = 1.0
"""Seconds to wait for others that write."""
_ROW = f"({', '.join('?' * len(COLUMNS))})"
_INSERT: Mapping[int, str] = {
    # Its own words for a row that is there already, which take a tenth less than the standard's.
    rows: f"INSERT OR IGNORE INTO usage ({', '.join(COLUMNS)}) VALUES {', '.join([_ROW] * rows)}"
    for rows in (128, 32, 4, 1)
}
"""Rows → a statement that writes so many: behind each the thread waits for its turn again, which
takes longer than to write a row. More would hold everybody else up while they are handed over.
"""


class SqliteBook:
    days = "strftime('%Y-%m-%d', time, 'unixepoch')"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def write(self, rows: Sequence[Row]) -> None:
        try:
            connection = self._connection or self._opened()
            with connection:
                # SQLite before 3.32 takes 999.
                most = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // len(COLUMNS)
                for statement, values in _statements(rows, most):
                    connection.execute(statement, values)
        except (sqlite3.Error, OSError) as error:
            raise LedgerAway(f"{self._path}: {error}") from error

    def _opened(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self._path, timeout=_PATIENCE)
        # Rows are written by the kernel when this process is killed; only a power cut loses some.
        for setting in ("journal_mode = WAL", "synchronous = NORMAL"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute(CREATE)
        connection.execute(INDEX)
        self._connection = connection
        return connection

    def read(self, question: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        if not self._path.exists():  # nothing was asked yet
            return ()
        address = f"{self._path.absolute().as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE)) as connection:
                return connection.execute(question, dict(values)).fetchall()
        except sqlite3.Error as error:
            raise LedgerAway(f"{self._path}: {error}") from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _statements(rows: Sequence[Row], most: int) -> Iterator[tuple[str, Sequence[Any]]]:
    done = 0
    for size, statement in _INSERT.items():
        while most >= size <= len(rows) - done:
            yield statement, [*chain.from_iterable(rows[done : done + size])]
            done += size
