"""What is counted outlives the process, and no request waits for the file."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from middleware.state.file import FileState
from middleware.state.store import Hold
from tests.support.paths import ROOT

MONTH = 31 * 86400.0
HOLDS = [
    Hold("requests:a", 1, 3, 60),
    Hold("open:a#1", 1, float("inf"), 3600),
    Hold("usd:a:2026-11", 0.5, 10, MONTH, sliding=False),
]
SPENT = {"open:a#1": 0.0, "usd:a:2026-11": 2.0}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "state.sqlite3"


async def use(state: FileState, requests: int = 1) -> None:
    for number in range(requests):
        await state.take(f"r{number}", HOLDS)
        await state.settle(f"r{number}", SPENT)


async def kept(path: Path) -> list[float]:
    state = FileState(path, pytest.fail)
    found = [*await state.sums([hold.counter for hold in HOLDS])]
    await state.close()
    return found


async def until(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + 10
    while not true():
        assert time.monotonic() < ends
        await asyncio.sleep(0.02)


def test_a_restart_goes_on_where_it_was(path: Path) -> None:
    async def run() -> None:
        state = FileState(path, pytest.fail)
        await use(state, 2)
        await state.take("open", HOLDS)  # ends with the process
        await state.mark("rest:a#1", "limited", 60)
        await state.close()
        assert await kept(path) == [3, 0, 4.0]
        state = FileState(path, pytest.fail)
        assert (await state.take("new", HOLDS[:1])).refused
        assert [mark and mark.text for mark in await state.read(["rest:a#1", "b"])] == [
            *("limited", None)
        ]
        await use(state)
        await state.close()
        assert (await kept(path))[2] == 4.0  # nothing was taken, so nothing is settled

    asyncio.run(run())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_two_processes_spent_is_added(path: Path) -> None:
    async def run() -> None:
        states = [FileState(path, pytest.fail) for _ in range(2)]
        for state in states:
            await use(state)
        for state in states:
            await state.close()
        assert (await kept(path))[2] == 4.0

    asyncio.run(run())


def test_nothing_is_made_before_there_is_something_to_keep(path: Path) -> None:
    asyncio.run(kept(path))
    assert not path.parent.exists()


_SPENDER = f"""
import asyncio, sys
from pathlib import Path
from middleware.state.file import FileState
from middleware.state.store import Hold
async def run():
    state = FileState(Path(sys.argv[1]), print)
    await state.take("r", [Hold("usd:a:2026-11", 0.5, 10, {MONTH}, sliding=False)])
    await state.settle("r", {{"usd:a:2026-11": 2.0}})
    print("spent", flush=True)
    await asyncio.sleep(60)
asyncio.run(run())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_process_that_is_killed_loses_the_last_second_at_most(path: Path) -> None:
    command = [sys.executable, "-c", _SPENDER, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"spent\n"
        time.sleep(1.0)
        os.kill(process.pid, signal.SIGKILL)
    assert asyncio.run(kept(path))[2] == 2.0


def test_a_locked_file_delays_nothing_and_gets_what_it_missed(path: Path) -> None:
    async def run() -> None:
        said: list[str] = []
        state = FileState(path, said.append)
        await use(state)
        await until(path.exists)
        await until(lambda: not state._counters)
        with sqlite3.connect(path, isolation_level=None, timeout=5) as other:
            other.execute("BEGIN IMMEDIATE")
            longest = 0.0
            ends = time.monotonic() + 2.0
            while time.monotonic() < ends or state.well:
                begun = time.monotonic()
                await use(state)
                longest = max(longest, time.monotonic() - begun)
                await asyncio.sleep(0.01)
            other.execute("ROLLBACK")
        assert longest < 0.3
        await until(lambda: state.well)
        (spent,) = await state.sums(["usd:a:2026-11"])
        await state.close()
        assert (await kept(path))[2] == spent
        assert len(said) == 2
        assert "locked" in said[0]

    asyncio.run(run())


@pytest.mark.parametrize("other", ["text", "database"])
def test_a_file_of_somebody_else_is_never_touched(path: Path, other: str) -> None:
    path.parent.mkdir()
    if other == "text":
        path.write_text("important\n" * 100)
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE theirs (a)")
    before, said = path.read_bytes(), list[str]()

    async def run() -> None:
        state = FileState(path, said.append)
        for _ in range(3):
            await use(state)
            await asyncio.sleep(0.6)
        assert not state.well
        await state.close()

    asyncio.run(run())
    assert len(said) == 1
    assert path.read_bytes() == before
