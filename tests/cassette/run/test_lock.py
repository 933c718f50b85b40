"""A file that one process at a time may write, although others died while they had it."""

from __future__ import annotations

import os
from pathlib import Path, PosixPath
from threading import Event, Thread

from middleware.cassettes.record.lock import locked


def dead() -> int:
    process = os.spawnvp(os.P_NOWAIT, "true", ["true"])
    os.waitpid(process, 0)
    return process


class Slow(PosixPath):
    """Whoever reads it goes on once another has the lock."""

    read, taken = Event(), Event()

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        text = super().read_text(encoding, errors)
        self.read.set()
        self.taken.wait(5)
        return text


def test_of_two_that_find_a_dead_ones_lock_one_has_it(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    (tmp_path / "t.yaml.lock").write_text(str(dead()))
    both = Event()

    def wait_for_it() -> None:
        with locked(Slow(path)):
            both.set()

    waiting = Thread(target=wait_for_it)
    waiting.start()
    assert Slow.read.wait(5)
    with locked(path):
        Slow.taken.set()
        assert not both.wait(0.2)
    waiting.join(5)
    assert both.is_set()
    assert [*tmp_path.iterdir()] == []
