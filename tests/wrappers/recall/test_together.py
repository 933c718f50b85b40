"""What several keep at once is one transaction, and each hears what became of its own."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from middleware.wrappers.recall import Limits, SqliteStore
from middleware.wrappers.recall.store import Entry, StoreFailure
from middleware.wrappers.recall.together import Together


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recall.sqlite3"


def entry(number: int, size: int = 10) -> Entry:
    return Entry(b"%d" % number, b"x" * size)


async def keep_all(store: SqliteStore, *entries: Entry) -> list[BaseException | None]:
    return await asyncio.gather(*(store.keep([one], ()) for one in entries), return_exceptions=True)


def test_what_is_kept_in_one_turn_is_written_at_once_and_found_by_others(path: Path) -> None:
    store, other = SqliteStore(path), SqliteStore(path)
    said: list[str] = []

    async def go() -> None:
        await store.keep([entry(0)], ())
        assert store._connection is not None
        store._connection.set_trace_callback(said.append)
        assert await keep_all(store, *map(entry, range(1, 6))) == [None] * 5
        assert all(other.get(b"%d" % number) for number in range(6))

    asyncio.run(go())
    assert said.count("COMMIT") == 1


def test_one_that_never_fits_fails_alone(path: Path) -> None:
    store = SqliteStore(path, Limits(max_bytes=200_000))
    outcomes = asyncio.run(keep_all(store, entry(1), entry(2, 300_000), entry(3)))
    assert [type(outcome) for outcome in outcomes] == [type(None), StoreFailure, type(None)]
    assert store.get(b"1")
    assert store.get(b"3")
    assert not store.get(b"2")


def test_several_wait_for_a_writer_of_another_process(path: Path) -> None:
    store = SqliteStore(path)
    assert store.get(b"1") is None  # the file is there

    async def go() -> list[BaseException | None]:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            keeping = asyncio.create_task(keep_all(store, entry(1), entry(2)))
            await asyncio.sleep(0.01)
            other.execute("ROLLBACK")
            return await keeping

    assert asyncio.run(go()) == [None, None]
    assert store.get(b"1")
    assert store.get(b"2")


def test_who_leaves_takes_nobody_with_it(path: Path) -> None:
    store = SqliteStore(path)

    async def go() -> None:
        leaving, staying = (asyncio.create_task(store.keep([entry(n)], ())) for n in (1, 2))
        await asyncio.sleep(0)
        leaving.cancel()
        await staying
        assert leaving.cancelled()

    asyncio.run(go())
    assert store.get(b"2")


def test_a_mistake_of_its_own_leaves_nobody_waiting() -> None:
    def write(entries: Sequence[Entry], used: Sequence[bytes]) -> bool:
        raise ZeroDivisionError

    async def go() -> bool:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        return await asyncio.wait_for(Together(write).join([entry(1)], ()), 1)

    assert asyncio.run(go()) is False


def test_much_is_written_in_several_turns() -> None:
    groups: list[int] = []

    def write(entries: Sequence[Entry], used: Sequence[bytes]) -> bool:
        groups.append(len(entries))
        return True

    async def go() -> None:
        together = Together(write)
        await asyncio.gather(*(together.join([entry(one, 400_000)], ()) for one in range(7)))

    asyncio.run(go())
    assert groups == [3, 3, 1]
