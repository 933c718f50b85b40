"""What is known not to be in a file of SQLite, without asking SQLite again.

A question takes ten to twenty microseconds of a request, and is nearly always answered with
nothing. Each commit of each process is written to the log beside the file (`-wal`): who finds that
as it was knows that nothing came since.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

_MOST = 4096
_TICK = 100_000_000
"""Nanoseconds; of two writes within one tick of a file system's clock, which is ten times shorter,
the second does not show.
"""
_OFTEN = 0.001
"""Seconds; looks that are closer to each other are a busy worker's, where one serves several."""
_LONGEST_TURN = 0.1
"""Seconds; a loop that is closed tells nobody that its turn is over."""
_TELLS = os.name != "nt"
"""Windows may say the time of a write only when the file is closed."""
_CLOSED = -1


class Absences:
    """Keys that were looked for in vain, as long as nobody has written since."""

    def __init__(self, file: Path) -> None:
        self._path = f"{file}-wal"
        self._log = _CLOSED
        """Its descriptor is kept: to find it by its path takes longer than to ask SQLite."""
        self._keys: set[bytes] = set()
        self._written: tuple[int, int] | None = None
        """What the log told before they were looked for; None: nothing to rely on."""
        self._looked = self._fresh_until = 0.0
        """When the log was looked at, and until when nobody can have heard of what came since."""

    def has(self, key: bytes) -> bool:
        """Whether it is known to be absent; only while SQLite has the file open."""
        if self._fresh_until and time.monotonic() < self._fresh_until:
            return key in self._keys
        if self._written is not None:
            found = os.fstat(self._log)
            if (found.st_mtime_ns, found.st_size) == self._written and found.st_nlink:
                self._share()
                return key in self._keys
        self._keys.clear()
        self._written = self._state()
        return False

    def _share(self) -> None:
        """Let requests that are answered in this turn of the event loop rely on this look: they
        had come before it, and no client names what it was not yet told.

        To be told that the turn is over takes time, too: who is alone looks each time.
        """
        before, self._looked = self._looked, time.monotonic()
        if self._looked - before < _OFTEN:
            try:
                asyncio.get_running_loop().call_soon(self.doubt)
            except RuntimeError:  # no loop runs
                return
            self._fresh_until = self._looked + _LONGEST_TURN

    def doubt(self) -> None:
        """Look again the next time."""
        self._fresh_until = 0.0

    def add(self, key: bytes) -> None:
        """It was looked for behind the last `has`, and is not there."""
        if self._written is None:
            return
        if len(self._keys) >= _MOST:
            self._keys.clear()
        self._keys.add(key)

    def forget(self) -> None:
        """The file is closed: the next one has another log."""
        self.doubt()
        log, self._log, self._written = self._log, _CLOSED, None
        if log != _CLOSED:
            os.close(log)

    def __del__(self) -> None:
        self.forget()

    def _state(self) -> tuple[int, int] | None:
        if self._log == _CLOSED:
            self._log = _opened(self._path)
        if self._log == _CLOSED:
            return None
        found = os.fstat(self._log)
        if not found.st_nlink:  # another stands in its place, or will
            self.forget()
            return None
        if time.time_ns() - found.st_mtime_ns < _TICK:
            return None
        return found.st_mtime_ns, found.st_size


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY) if _TELLS else _CLOSED
    except OSError:
        return _CLOSED
