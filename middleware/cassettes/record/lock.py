"""A file beside a file, which one process at a time may have."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from middleware.cassettes.record.parts import is_running

_PATIENCE, _PAUSE = 30.0, 0.02


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock of a file; one that a dead process left is taken away."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f"{path.name}.lock")
    until = time.monotonic() + _PATIENCE
    while not _take(lock):
        if time.monotonic() > until:
            raise OSError(f"another process has had {lock.name} for {_PATIENCE:.0f} s: remove it")
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _take(lock: Path) -> bool:
    try:
        with open(lock, "x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        with suppress(OSError):
            _free(lock)
        return False
    return True


def _free(lock: Path) -> None:
    """Take a dead process's lock away: one of us at a time, who looks once more, as the lock may
    be another's by now.
    """
    if not _is_left(lock):
        return
    claim = lock.with_name(f"{lock.name}.left")
    claim.open("x").close()
    try:
        if _is_left(lock):
            lock.unlink()
    finally:
        claim.unlink()


def _is_left(lock: Path) -> bool:
    owner = lock.read_text()
    return bool(owner) and not is_running(owner)
