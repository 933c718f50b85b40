"""What is known not to be there is found as soon as anybody writes it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from middleware.wrappers.recall import SqliteStore
from tests.wrappers.recall.stores import keep

KEYS = [b"a", b"b", b"c"]


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
    assert [questions(store, b"k") for _ in range(3)] == [1, 0, 0]
    assert questions(store, b"l") == 1
    keep(SqliteStore(path), (b"m", b"v"))
    assert [questions(store, b"k") for _ in range(2)] == [1, 0]


def test_where_no_mark_can_be_had_it_is_looked_for_each_time(tmp_path: Path) -> None:
    (tmp_path / "recall.sqlite3-mark").mkdir()
    store = SqliteStore(tmp_path / "recall.sqlite3")
    assert [questions(store, b"k") for _ in range(2)] == [1, 1]
    keep(store, (b"k", b"v"))
    assert store.get(b"k") == b"v"


STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(KEYS), st.sampled_from(["get", "keep", "close"])),
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
            elif step == "close":
                stores[which].close()
            else:
                assert stores[which].get(key) == known.get(key)
        for store in stores:
            store.close()
