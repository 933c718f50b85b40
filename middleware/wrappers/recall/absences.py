"""What is known not to be in a file of SQLite, without asking SQLite again.

A question takes ten to twenty microseconds of a request, and is nearly always answered with
nothing. Beside the file stands a mark that whoever writes into it changes: who finds it as it was
knows that nothing came since. It is mapped into memory, as a system call is what is to be saved.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path

_MOST = 4096
_SIZE = 8


class Absences:
    """Keys that were looked for in vain, as long as nobody has written since."""

    def __init__(self, file: Path) -> None:
        self._path = f"{file}-mark"
        self._mark: mmap.mmap | None = None
        """None: there is none yet, or it cannot be had."""
        self._keys: set[bytes] = set()
        self._before = b""
        """The mark before they were looked for."""

    def open(self) -> None:
        """With the file: another process may have put another one in its place."""
        self._mark, self._before = None, b""
        with suppress(OSError, ValueError):  # where it cannot be had, SQLite is asked each time
            opened = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                os.truncate(opened, _SIZE)
                self._mark = mmap.mmap(opened, _SIZE)
            finally:
                os.close(opened)

    def has(self, key: bytes) -> bool:
        if self._mark is None:
            return False
        mark = self._mark[:]
        if mark != self._before:
            self._keys.clear()
            self._before = mark
        return key in self._keys

    def add(self, key: bytes) -> None:
        """It was looked for behind the last `has`, and is not there."""
        if self._mark is None:
            return
        if len(self._keys) >= _MOST:
            self._keys.clear()
        self._keys.add(key)

    def end(self) -> None:
        """Something was written: what anybody knows of this file is over."""
        if self._mark is not None:
            self._mark[:] = os.urandom(_SIZE)
