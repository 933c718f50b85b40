"""Stores are bounded and shared, in memory and in a file."""

from __future__ import annotations

from middleware.wrappers.recall import Limits
from tests.wrappers.recall.stores import Clock, Made, keep


def test_what_was_kept_last_is_found(made: Made) -> None:
    store = made(Limits(), Clock())
    for value in (b"one", b"two", b"one"):
        keep(store, (b"k", value))
        assert store.get(b"k") == value
    assert store.get(b"other") is None


def test_age_is_bounded_from_the_last_use(made: Made) -> None:
    clock = Clock()
    store = made(Limits(max_age=100), clock)
    keep(store, (b"old", b"1"), (b"used", b"2"))
    clock.now += 60
    keep(store, (b"new", b"3"), used=(b"used",))
    clock.now += 60
    assert store.get(b"old") is None
    assert store.get(b"used") == b"2"
    assert store.get(b"new") == b"3"


def test_size_is_bounded_and_the_oldest_go_first(made: Made) -> None:
    clock = Clock()
    store = made(Limits(max_bytes=400_000), clock)
    for number in range(2000):
        clock.now += 0.01
        keep(store, (b"%d" % number, b"x" * 1000))
    found = [number for number in range(2000) if store.get(b"%d" % number)]
    assert 100 < len(found) < 500
    assert found == list(range(found[0], 2000))


def test_an_entry_that_is_too_large_is_left_out(made: Made) -> None:
    store = made(Limits(max_entry=10), Clock())
    keep(store, (b"k", b"x" * 11), (b"l", b"x" * 10))
    assert store.get(b"k") is None
    assert store.get(b"l") == b"x" * 10


def test_a_closed_store_opens_again(made: Made) -> None:
    store = made(Limits(), Clock())
    keep(store, (b"k", b"v"))
    store.close()
    assert store.get(b"k") in (b"v", None)
    keep(store, (b"l", b"w"))
    assert store.get(b"l") == b"w"


def test_rounds_of_tools_are_kept_apart(made: Made) -> None:
    clock = Clock()
    store = made(Limits(max_bytes=400_000), clock)
    keep(store, (b"k", b"thought"))
    rounds = store.rounds()
    assert store.rounds().get(b"k") is None
    for number in range(2000):
        clock.now += 0.01
        keep(rounds, (b"%d" % number, b"x" * 1000))
    assert store.get(b"k") == b"thought"
    assert 100 < sum(store.rounds().get(b"%d" % number) is not None for number in range(2000)) < 500
    store.close()
