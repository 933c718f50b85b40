"""What is known not to be in a file of SQLite, without asking SQLite again.

A question takes ten to twenty microseconds of a request, and is nearly always answered with
nothing. Each commit of each process is written to the log beside the file (`-wal`): who finds that
as it was knows that nothing came since.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_MOST = 4096
_TICK = 100_000_000
"""Nanoseconds; of two writes within one tick of a file system's clock, which is ten times shorter,
the second does not show.
"""
_TELLS = os.name != "nt"
"""Windows may say the time of a write only when the file is closed."""


class Absences:
    """Keys that were looked for in vain, as long as nobody has written since."""

    def __init__(self, file: Path) -> None:
        self._log = f"{file}-wal"
        self._keys: set[bytes] = set()
        self._written: tuple[int, int, int] | None = None
        """What the log told before they were looked for; None: nothing to rely on."""

    def has(self, key: bytes) -> bool:
        written = self._state()
        if written is None or written != self._written:
            self._keys.clear()
            self._written = written
        return key in self._keys

    def add(self, key: bytes) -> None:
        """It was looked for behind the last `has`, and is not there."""
        if self._written is None:
            return
        if len(self._keys) >= _MOST:
            self._keys.clear()
        self._keys.add(key)

    def _state(self) -> tuple[int, int, int] | None:
        if not _TELLS:
            return None
        try:
            log = os.stat(self._log)
        except OSError:
            return None
        if time.time_ns() - log.st_mtime_ns < _TICK:
            return None
        return log.st_mtime_ns, log.st_size, log.st_ino
