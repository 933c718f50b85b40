"""The ledger in a file of SQLite."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

from middleware.accounts.ledger.book import CREATE, INDEX, INSERT, LedgerAway
from middleware.accounts.ledger.rows import COLUMNS, Row

_PATIENCE = 1.0
"""Seconds to wait for others that write."""
_TOGETHER = 32
"""Rows of one statement: with each the interpreter's lock changes hands twice."""
_INTO = INSERT.partition(" VALUES ")[0]
_ROW = f"({', '.join('?' * len(COLUMNS))})"
_ONE, _SEVERAL = (
    f"{_INTO} VALUES {', '.join([_ROW] * count)} ON CONFLICT (id) DO NOTHING"
    for count in (1, _TOGETHER)
)


class SqliteBook:
    days = "strftime('%Y-%m-%d', time, 'unixepoch')"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def write(self, rows: Sequence[Row]) -> None:
        try:
            connection = self._connection or self._opened()
            with connection:
                _insert(connection, rows)
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


def _insert(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    rest = len(rows) - len(rows) % _TOGETHER
    for start in range(0, rest, _TOGETHER):
        together = rows[start : start + _TOGETHER]
        connection.execute(_SEVERAL, [*chain.from_iterable(together)])
    connection.executemany(_ONE, rows[rest:])
