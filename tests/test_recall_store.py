"""Stores are bounded, shared and durable, and whatever happens to them is a failure by name."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from middleware.recall import (
    Entry,
    Limits,
    MemoryStore,
    Recall,
    SqliteStore,
    Store,
    StoreFailure,
    said,
)
from tests.dialogue import Model, answer, ask, assistant, request, result, user


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


Made = Callable[[Limits, Clock], Store]


@pytest.fixture(params=["memory", "sqlite"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    if request.param == "memory":
        return MemoryStore
    return lambda limits, clock: SqliteStore(tmp_path / "deep" / "recall.sqlite3", limits, clock)


def keep(store: Store, *entries: tuple[bytes, bytes], used: tuple[bytes, ...] = ()) -> None:
    for entry in entries:
        asyncio.run(store.keep(Entry(*entry), used))


def test_what_is_kept_is_found_newest_first(made: Made) -> None:
    clock = Clock()
    store = made(Limits(), clock)
    for value in (b"one", b"two", b"one"):
        keep(store, (b"k", value))
        clock.now += 1
    assert list(store.find(b"k")) == [b"one", b"two"]
    assert list(store.find(b"other")) == []


def test_few_are_found_by_key_and_any_by_identity(made: Made) -> None:
    clock = Clock()
    store = made(Limits(), clock)
    for number in range(40):
        keep(store, (b"k", b"%d" % number))
        clock.now += 1
    found = list(store.find(b"k"))
    assert found[0] == b"39"
    assert len(found) == 16
    assert store.pick(b"k", said.identity(b"3")) == b"3"
    assert store.pick(b"k", said.identity(b"40")) is None


def test_age_is_bounded_from_the_last_use(made: Made) -> None:
    clock = Clock()
    store = made(Limits(max_age=100), clock)
    keep(store, (b"old", b"1"), (b"used", b"2"))
    clock.now += 60
    keep(store, (b"new", b"3"), used=(b"used",))
    clock.now += 60
    assert list(store.find(b"old")) == []
    assert list(store.find(b"used")) == [b"2"]
    assert list(store.find(b"new")) == [b"3"]


def test_size_is_bounded_and_the_oldest_go_first(made: Made) -> None:
    clock = Clock()
    store = made(Limits(max_bytes=400_000), clock)
    for number in range(2000):
        clock.now += 0.01
        keep(store, (b"%d" % number, b"x" * 1000))
    found = [number for number in range(2000) if store.find(b"%d" % number)]
    assert 100 < len(found) < 500
    assert found == list(range(found[0], 2000))


def test_an_entry_that_is_too_large_is_left_out(made: Made) -> None:
    store = made(Limits(max_entry=10), Clock())
    keep(store, (b"k", b"x" * 11), (b"l", b"x" * 10))
    assert list(store.find(b"k")) == []
    assert list(store.find(b"l")) == [b"x" * 10]


def test_a_closed_store_opens_again(made: Made) -> None:
    store = made(Limits(), Clock())
    keep(store, (b"k", b"v"))
    store.close()
    assert list(store.find(b"k")) in ([b"v"], [])
    keep(store, (b"l", b"w"))
    assert list(store.find(b"l")) == [b"w"]


# The file ---------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recall.sqlite3"


def test_memories_survive_a_restart_and_are_shared(path: Path) -> None:
    first, second = SqliteStore(path), SqliteStore(path)
    assert list(second.find(b"k")) == []
    keep(first, (b"k", b"v"))
    assert list(second.find(b"k")) == [b"v"]
    first.close()
    second.close()
    assert list(SqliteStore(path).find(b"k")) == [b"v"]


def test_only_its_owner_may_read_it(path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"v"))
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_deleted_file_begins_anew(path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"v"))
    path.unlink()
    assert list(store.find(b"k")) == [b"v"]
    keep(store, (b"l", b"w"))
    assert list(store.find(b"k")) == []
    assert list(SqliteStore(path).find(b"l")) == [b"w"]


@pytest.mark.parametrize("size", [10, 5000])
def test_a_damaged_file_fails_once_and_begins_anew(path: Path, size: int) -> None:
    path.write_bytes(b"not a database " * size)
    store = SqliteStore(path)
    with pytest.raises(StoreFailure, match="begins anew"):
        store.find(b"k")
    keep(store, (b"k", b"v"))
    assert list(store.find(b"k")) == [b"v"]


def test_damage_while_it_is_open_fails_by_name(path: Path) -> None:
    store = SqliteStore(path)
    for number in range(200):
        keep(store, (b"%d" % number, b"x" * 2000))
    store.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(StoreFailure):
        [store.find(b"%d" % number) for number in range(200)]
    keep(store, (b"k", b"v"))
    assert list(store.find(b"k")) == [b"v"]


def test_a_value_with_a_flipped_bit_is_not_found(path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"value"))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE memory SET value = ?", (b"valuf",))
    connection.close()
    assert list(store.find(b"k")) == []


def test_a_read_only_file_is_read_and_not_written(path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"v"))
    connection = store._connection
    assert connection is not None
    connection.execute("PRAGMA query_only = ON")
    assert list(store.find(b"k")) == [b"v"]
    with pytest.raises(StoreFailure, match="readonly"):
        keep(store, (b"l", b"w"))
    keep(store, (b"l", b"w"))
    assert list(store.find(b"l")) == [b"w"]


def test_a_place_that_cannot_be_is_a_failure_and_not_tried_at_once_again(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    clock = Clock()
    store = SqliteStore(blocked / "recall.sqlite3", clock=clock)
    for _ in range(2):
        with pytest.raises(StoreFailure, match="opened"):
            store.find(b"k")
    blocked.unlink()
    with pytest.raises(StoreFailure):
        store.find(b"k")
    clock.now += 6
    assert list(store.find(b"k")) == []


def test_a_full_file_makes_room(path: Path) -> None:
    store = SqliteStore(path, Limits(max_bytes=64_000))
    for number in range(400):
        keep(store, (b"%d" % number, b"x" * 900))
    assert list(store.find(b"399")) == [b"x" * 900]
    assert path.stat().st_size < 200_000


def test_an_entry_no_room_can_be_made_for_is_a_failure(path: Path) -> None:
    store = SqliteStore(path, Limits(max_bytes=64_000))
    with pytest.raises(StoreFailure, match="full"):
        keep(store, (b"k", b"x" * 400_000))


def test_a_writer_that_holds_the_file_delays_and_then_fails_the_keeping(path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"v"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailure, match="locked"):
        keep(store, (b"l", b"w"))
    assert list(store.find(b"k")) == [b"v"]

    async def freed_in_between() -> None:
        keeping = asyncio.create_task(store.keep(Entry(b"l", b"w"), ()))
        await asyncio.sleep(0.01)
        other.execute("ROLLBACK")
        await keeping

    asyncio.run(freed_in_between())
    other.close()
    assert list(store.find(b"l")) == [b"w"]


def test_a_file_of_another_version_is_emptied(path: Path) -> None:
    store = SqliteStore(path)
    keep(store, (b"k", b"v"))
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert list(store.find(b"k")) == []


CALLED = ("call_1", "weather", '{"city":"沈阳"}')


@pytest.mark.parametrize("damage", ["delete", "garbage", "directory"])
def test_whatever_happens_to_the_file_no_request_fails(path: Path, damage: str) -> None:
    model = Model(answer("t", said=[CALLED]), answer(text="5"))
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
