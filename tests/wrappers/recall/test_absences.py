"""What is known not to be there is found as soon as anybody writes it."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from middleware.wrappers.recall import SqliteStore
from middleware.wrappers.recall.store import Entry
from tests.wrappers.recall.stores import keep

KEYS = [b"a", b"b", b"c"]


def rest(path: Path) -> None:
    """As if nobody had written for a second."""
    log = f"{path}-wal"
    if os.path.exists(log):
        then = os.stat(log).st_mtime_ns - 1_000_000_000
        os.utime(log, ns=(then, then))


def questions(store: SqliteStore, key: bytes) -> int:
    """How often SQLite is asked for a key."""
    asked: list[str] = []
    connection = store._opened()
    connection.set_trace_callback(asked.append)
    assert store.get(key) is None
    connection.set_trace_callback(None)
    return len(asked)


def test_an_absent_key_is_looked_for_once(tmp_path: Path) -> None:
    path = tmp_path / "recall.sqlite3"
    store = SqliteStore(path)
    keep(store, (b"other", b"v"))
    rest(path)
    assert [questions(store, b"k") for _ in range(3)] == [1, 0, 0]
    assert questions(store, b"l") == 1
    keep(SqliteStore(path), (b"m", b"v"))
    rest(path)
    assert [questions(store, b"k") for _ in range(2)] == [1, 0]


def test_what_was_written_just_now_is_not_relied_on(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "recall.sqlite3")
    keep(store, (b"other", b"v"))
    assert [questions(store, b"k") for _ in range(2)] == [1, 1]


def look_until_it_is_shared(store: SqliteStore) -> None:
    """Two looks that follow each other are enough."""
    for _ in range(1000):
        assert store.get(b"k") is None
        if store._absences._fresh_until:
            return
    raise AssertionError("no look was shared")


@pytest.mark.parametrize("by", ["another", "itself"])
def test_one_look_serves_a_turn_of_the_loop_and_no_more(tmp_path: Path, by: str) -> None:
    path = tmp_path / "recall.sqlite3"
    store = SqliteStore(path)
    keep(store, (b"other", b"v"))
    rest(path)

    async def script() -> None:
        look_until_it_is_shared(store)
        writer = store if by == "itself" else SqliteStore(path)
        assert writer._keep_now([Entry(b"k", b"told")], ())
        if by == "itself":
            assert store.get(b"k") == b"told"
        await asyncio.sleep(0)  # whoever asks now may have been told by another
        assert store.get(b"k") == b"told"

    asyncio.run(script())


def test_a_loop_that_was_closed_is_not_relied_on(tmp_path: Path) -> None:
    path = tmp_path / "recall.sqlite3"
    store = SqliteStore(path)
    keep(store, (b"other", b"v"))
    rest(path)

    async def script() -> None:
        look_until_it_is_shared(store)
        raise SystemExit

    loop = asyncio.SelectorEventLoop()
    with pytest.raises(SystemExit):
        loop.run_until_complete(script())
    loop.close()  # without another turn
    keep(SqliteStore(path), (b"k", b"told"))
    time.sleep(0.11)
    assert store.get(b"k") == b"told"


def test_without_a_loop_nobody_relies_on_a_look(tmp_path: Path) -> None:
    path = tmp_path / "recall.sqlite3"
    store = SqliteStore(path)
    keep(store, (b"other", b"v"))
    rest(path)
    assert [store.get(b"k") for _ in range(9)] == [None] * 9
    keep(SqliteStore(path), (b"k", b"told"))
    assert store.get(b"k") == b"told"


STEPS = st.lists(
    st.tuples(
        st.integers(0, 1), st.sampled_from(KEYS), st.sampled_from(["get", "keep", "rest", "close"])
    ),
    max_size=30,
)


@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_two_that_share_a_file_know_the_same(
    steps: list[tuple[int, bytes, str]],
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "recall.sqlite3"
        stores, known = (SqliteStore(path), SqliteStore(path)), dict[bytes, bytes]()
        for which, key, step in steps:
            if step == "keep":
                known[key] = b"%d" % len(known)
                keep(stores[which], (key, known[key]))
            elif step == "rest":
                rest(path)
            elif step == "close":
                stores[which].close()
            else:
                assert stores[which].get(key) == known.get(key)
        for store in stores:
            store.close()
