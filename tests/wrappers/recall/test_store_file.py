"""The file of memories is durable, and whatever happens to it is a failure by name."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from middleware.wrappers.recall import Limits, MemoryStore, Recall, SqliteStore, foreign
from middleware.wrappers.recall.fingerprint import identity_of
from middleware.wrappers.recall.store import Entry, StoreFailure
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import answer, assistant, request, result, user
from tests.support.fold import ask
from tests.wrappers.recall.stores import Clock, keep


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recall.sqlite3"


def test_memories_survive_a_restart_and_are_shared(path: Path) -> None:
    first, second = SqliteStore(path), SqliteStore(path)
    assert second.get(b"k") is None
    keep(first, (b"k", b"v"))
    assert second.get(b"k") == b"v"
    first.close()
    second.close()
    assert SqliteStore(path).get(b"k") == b"v"


def test_only_its_owner_may_read_it(path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"v"))
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_deleted_file_begins_anew(path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"v"))
    path.unlink()
    assert store.get(b"k") == b"v"
    keep(store, (b"l", b"w"))
    assert store.get(b"k") is None
    assert SqliteStore(path).get(b"l") == b"w"


def other_memory(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE memory (at, value); INSERT INTO memory VALUES (1, 'theirs')"
        )


def other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE memory (key, value); CREATE TABLE orders (id); PRAGMA user_version = 1"
        )


FOREIGN: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_bytes(b"not a database " * 10),
    "long text": lambda path: path.write_bytes(b"not a database " * 5000),
    "zeros": lambda path: path.write_bytes(bytes(8192)),
    "another database": other_database,
    "a memory of others": other_memory,
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_named_and_left_as_it_is(path: Path, kind: str) -> None:
    FOREIGN[kind](path)
    before = path.read_bytes()
    store = SqliteStore(path)
    for _ in range(2):
        with pytest.raises(StoreFailure, match=r"recall\.sqlite3 is no recall store"):
            store.get(b"k")
        with pytest.raises(StoreFailure):
            keep(store, (b"k", b"v"))
        store = SqliteStore(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_foreign_file_put_in_its_place_is_left_as_it_is(path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"v"))
    store.close()
    store = SqliteStore(path)
    assert store.get(b"k") == b"v"
    path.unlink()
    path.write_bytes(b"a letter")
    with pytest.raises(StoreFailure, match="no recall store"):
        keep(store, (b"l", b"w"))
    assert path.read_bytes() == b"a letter"


def test_a_killed_process_leaves_a_file_that_is_ours(path: Path, tmp_path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"v"))
    copy = tmp_path / "copy" / "recall.sqlite3"
    copy.parent.mkdir()
    for file in path.parent.glob("recall.sqlite3*"):
        (copy.parent / file.name).write_bytes(file.read_bytes())
    assert foreign(copy) == ""
    assert SqliteStore(copy).get(b"k") == b"v"


def test_a_file_of_the_first_version_begins_anew(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "PRAGMA journal_mode = WAL; CREATE TABLE memory (key BLOB NOT NULL, digest BLOB, at, "
            "value, UNIQUE (key, digest)); CREATE INDEX memory_at ON memory (at); "
            "PRAGMA user_version = 1"
        )
    store = SqliteStore(path)
    assert store.get(b"k") is None
    keep(store, (b"k", b"v"))
    assert store.get(b"k") == b"v"


def filled(path: Path, count: int) -> SqliteStore:
    """A store with many entries that expired."""
    clock = Clock()
    store = SqliteStore(path, Limits(max_age=10), clock)
    asyncio.run(store.keep([Entry(b"%d" % number, b"x" * 200) for number in range(count)], ()))
    clock.now += 100
    return store


def test_what_expired_is_deleted_beside_the_requests(path: Path) -> None:
    store = filled(path, 30_000)

    async def longest_hold() -> float:
        held, loop = 0.0, asyncio.get_running_loop()
        for number in range(33):
            began = loop.time()
            await store.keep([Entry(b"new %d" % number, b"v")], ())
            held = max(held, loop.time() - began)
        return held

    assert asyncio.run(longest_hold()) < 0.1
    assert all(store.get(b"new %d" % number) == b"v" for number in range(33))
    with closing(sqlite3.connect(path)) as connection:
        (left,) = connection.execute("SELECT count(*) FROM memory").fetchone()
    assert left < 30_000


def test_memory_too_forgets_a_slice_at_a_time() -> None:
    clock = Clock()
    store = MemoryStore(Limits(max_age=10), clock)
    keep(store, *((b"%d" % number, b"v") for number in range(1000)))
    clock.now += 11
    keep(store, (b"new", b"v"))
    assert 500 < len(store._kept) < 1000
    for number in range(4):
        keep(store, (b"new %d" % number, b"v"))
    assert len(store._kept) == 5


def test_the_folder_is_its_owners_alone(tmp_path: Path) -> None:
    made, own, given = tmp_path / "made", tmp_path / "own", tmp_path / "given"
    for folder in (own, given):
        folder.mkdir(mode=0o755)
    for folder in (made, own, given):
        file = folder / "recall.sqlite3"
        file.touch(mode=0o644) if folder != made else None
        keep(SqliteStore(file, own_folder=folder == own), (b"k", b"v"))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    modes = [stat.S_IMODE(folder.stat().st_mode) for folder in (made, own, given)]
    assert modes == [0o700, 0o700, 0o755]


def test_damage_while_it_is_open_fails_by_name(path: Path) -> None:
    store = SqliteStore(path)
    for number in range(200):
        keep(store, (b"%d" % number, b"x" * 2000))
    store.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(StoreFailure):
        [store.get(b"%d" % number) for number in range(200)]
    keep(store, (b"k", b"v"))
    assert store.get(b"k") == b"v"


def test_a_value_with_a_flipped_bit_is_not_found(path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"value"))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE memory SET value = ?", (b"valuf",))
    connection.close()
    assert store.get(b"k") is None


def test_a_read_only_file_is_read_and_not_written(path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"v"))
    connection = store._connection
    assert connection is not None
    connection.execute("PRAGMA query_only = ON")
    assert store.get(b"k") == b"v"
    with pytest.raises(StoreFailure, match="readonly"):
        keep(store, (b"l", b"w"))
    keep(store, (b"l", b"w"))
    assert store.get(b"l") == b"w"


def test_a_place_that_cannot_be_is_a_failure_and_not_tried_at_once_again(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    clock = Clock()
    store = SqliteStore(blocked / "recall.sqlite3", clock=clock)
    for _ in range(2):
        with pytest.raises(StoreFailure, match="opened"):
            store.get(b"k")
    blocked.unlink()
    with pytest.raises(StoreFailure):
        store.get(b"k")
    clock.now += 6
    assert store.get(b"k") is None


@pytest.mark.parametrize("size", [900, 5_000, 70_000])
def test_a_full_file_makes_room(path: Path, size: int) -> None:
    store = SqliteStore(path, Limits(max_bytes=400_000))
    store._tidying = True  # nobody makes room beside it
    last = 2_000_000 // size

    async def fill() -> None:
        for number in range(last + 1):
            await store.keep([Entry(b"%d" % number, os.urandom(size))], ())

    asyncio.run(fill())
    assert store.get(b"%d" % last) is not None
    assert store.get(b"0") is None
    assert path.stat().st_size < 700_000


@pytest.mark.parametrize("entries", [1, 6])
def test_what_no_room_can_be_made_for_is_a_failure_and_drives_nothing_out(
    path: Path, entries: int
) -> None:
    store = SqliteStore(path, Limits(max_bytes=200_000))
    keep(store, *((b"%d" % number, b"x" * 2000) for number in range(40)))
    large = [Entry(b"large %d" % number, b"x" * (300_000 // entries)) for number in range(entries)]
    with pytest.raises(StoreFailure, match="full"):
        asyncio.run(store.keep(large, ()))
    assert all(store.get(b"%d" % number) for number in range(40))


@pytest.mark.parametrize("held", [0.01, 0.13], ids=["briefly", "until the last attempt"])
def test_a_writer_that_holds_the_file_delays_and_then_fails_the_keeping(
    path: Path, held: float
) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"v"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailure, match="locked"):
        keep(store, (b"l", b"w"))
    assert store.get(b"k") == b"v"

    async def freed_in_between() -> None:
        keeping = asyncio.create_task(store.keep([Entry(b"l", b"w")], ()))
        await asyncio.sleep(held)
        other.execute("ROLLBACK")
        await keeping

    asyncio.run(freed_in_between())
    other.close()
    assert store.get(b"l") == b"w"


def test_a_file_of_another_version_is_emptied(path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"v"))
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert store.get(b"k") is None


CALLED = ("call_1", "weather", '{"city":"沈阳"}')


@pytest.mark.parametrize("damage", ["delete", "garbage", "directory"])
def test_whatever_happens_to_the_file_no_request_fails(path: Path, damage: str) -> None:
    model = FakeAdapter(answer("t", said=[CALLED]), answer(text="5"))
    store = SqliteStore(path)
    ask(Recall(model, store), request(user("hi")))
    store.close()
    for file in path.parent.iterdir():
        file.unlink()
    if damage == "garbage":
        path.write_bytes(os.urandom(9000))
    if damage == "directory":
        path.mkdir()
    turn = assistant(None, CALLED)
    events = ask(Recall(model, SqliteStore(path)), request(user("hi"), turn, result("call_1", "5")))
    assert model.last()[1] == turn
    assert events[-1] == answer(text="5")[-1]


def test_a_value_of_a_version_before_is_found_by_its_digest(path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"value"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE memory SET digest = ?", (identity_of(b"value"),))
        assert store.get(b"k") == b"value"
        connection.execute("UPDATE memory SET digest = ?", (identity_of(b"valuf"),))
    assert store.get(b"k") is None


def test_a_sum_that_is_no_sum_finds_nothing(path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"value"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE memory SET digest = 7")  # as a flipped bit makes it
    assert store.get(b"k") is None
