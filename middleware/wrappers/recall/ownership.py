"""Whose a file is: no other than ours is ever written to or deleted."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing, suppress
from pathlib import Path

MARK = int.from_bytes(b"Utrc")
"""Says so in the file's head."""


def foreign(path: Path) -> str:
    """Say why a file is none of ours; empty if it is, or if there is none yet."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return "is no file"
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return ""  # who opens it says what is wrong
    if not head or head[68:] == MARK.to_bytes(4) or _is_first_version(path):
        return ""
    return "is no recall store, and what it holds would be lost"


def _is_first_version(path: Path) -> bool:
    """Those had no mark yet."""
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE sql NOT NULL")
            return {name for (name,) in found} == {"memory", "memory_at"}
    except sqlite3.Error:
        return False


def remove(path: Path) -> None:
    for name in (path, f"{path}-wal", f"{path}-shm"):
        with suppress(FileNotFoundError):
            os.unlink(name)
