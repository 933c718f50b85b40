"""What is kept is found at once and written soon; what cannot be written is told as before."""

from __future__ import annotations

import asyncio
import io
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import Message

from middleware import config
from middleware.server.app import create
from middleware.wrappers.recall import DeferredStore, MemoryStore, SqliteStore, StoreFailure
from middleware.wrappers.recall.store import Entry
from tests.support.door import DEMO, Door
from tests.wrappers.recall.stores import keep

ROOM = 8 * 1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.sqlite3"


class Shaky(MemoryStore):
    """Fails as often as is said, and stops there if that is said; tells what it was to write."""

    def __init__(self) -> None:
        super().__init__()
        self.fails, self.stops = 0, False
        self.failed, self.goes_on = asyncio.Event(), asyncio.Event()
        self.goes_on.set()
        self.groups: list[list[bytes]] = []

    async def keep(self, entries: Sequence[Entry], used: Sequence[bytes]) -> None:
        self.groups.append([key for key, _ in entries])
        await asyncio.sleep(0)
        await self.goes_on.wait()
        if self.fails:
            self.fails -= 1
            self.failed.set()
            if self.stops:
                self.goes_on.clear()
            raise StoreFailure("the disk is full")
        await super().keep(entries, used)


def with_shaky(script: Callable[[DeferredStore, Shaky], Awaitable[None]]) -> Shaky:
    """Run it where something was written already."""
    shaky = Shaky()

    async def whole() -> None:
        store = DeferredStore(shaky, ROOM)
        await store.keep([Entry(b"first", b"v")], ())
        await script(store, shaky)

    asyncio.run(whole())
    return shaky


def test_what_several_keep_is_found_at_once_and_written_together() -> None:
    async def script(store: DeferredStore, shaky: Shaky) -> None:
        for key in (b"a", b"b", b"c"):
            await store.keep([Entry(key, key)], ())
            assert store.get(key) == key
            assert shaky.get(key) is None
        await asyncio.sleep(0.1)
        assert [shaky.get(key) for key in (b"a", b"b", b"c")] == [b"a", b"b", b"c"]

    assert with_shaky(script).groups == [[b"first"], [b"a", b"b", b"c"]]


def test_it_is_found_while_it_is_written() -> None:
    async def script(store: DeferredStore, shaky: Shaky) -> None:
        await store.keep([Entry(b"a", b"1")], ())
        settling = asyncio.create_task(store.settle())
        while not settling.done():
            assert store.get(b"a") == b"1"
            await asyncio.sleep(0)
        assert shaky.get(b"a") == b"1"

    with_shaky(script)


def test_what_has_no_room_is_written_before_its_answer_ends() -> None:
    async def script(store: DeferredStore, shaky: Shaky) -> None:
        await store.keep([Entry(b"small", b"v")], ())
        await store.keep([Entry(b"large", b"x" * ROOM)], ())
        assert shaky.get(b"small")
        assert shaky.get(b"large")

    with_shaky(script)


def test_a_deletion_is_written_at_once_and_behind_what_it_deletes() -> None:
    async def script(store: DeferredStore, shaky: Shaky) -> None:
        await store.keep([Entry(b"a", b"v")], ())
        await store.keep([Entry(b"a", b"")], ())
        assert not store.get(b"a")
        assert not shaky.get(b"a")

    assert with_shaky(script).groups[1:] == [[b"a"], [b"a"]]


def test_a_failure_is_tried_again_and_then_told_to_whoever_keeps_next() -> None:
    async def script(store: DeferredStore, shaky: Shaky) -> None:
        shaky.fails = 2
        await store.keep([Entry(b"a", b"v")], ())
        await store.settle()
        assert shaky.get(b"a") == b"v"
        shaky.fails = 4
        await store.keep([Entry(b"lost", b"v")], ())
        await store.settle()
        assert store.get(b"lost") is None
        with pytest.raises(StoreFailure):
            await store.keep([Entry(b"told", b"v")], ())
        await store.keep([Entry(b"b", b"v")], ())
        assert shaky.get(b"b") == b"v"

    with_shaky(script)


def test_who_settles_does_not_wait_for_what_comes_meanwhile() -> None:
    async def script(store: DeferredStore, shaky: Shaky) -> None:
        async def go_on() -> None:
            for at in range(10_000):
                await store.keep([Entry(b"k%d" % at, b"v")], ())
                await asyncio.sleep(0)

        others = [asyncio.create_task(go_on()) for _ in range(4)]
        await asyncio.sleep(0)
        await store.keep([Entry(b"mine", b"v")], ())
        await asyncio.wait_for(store.settle(), 5)
        assert shaky.get(b"mine") == b"v"
        assert not any(task.done() for task in others)
        for task in others:
            task.cancel()

    with_shaky(script)


def test_what_comes_behind_a_failure_waits_for_its_own() -> None:
    async def script(store: DeferredStore, shaky: Shaky) -> None:
        await store.keep([Entry(b"lost", b"v")], ())
        shaky.fails, shaky.stops = 4, True
        settling = asyncio.create_task(store.settle())
        await asyncio.wait_for(shaky.failed.wait(), 5)
        telling = asyncio.create_task(store.keep([Entry(b"told", b"v")], ()))
        await asyncio.sleep(0)
        assert store.get(b"told") is None
        shaky.stops = False
        shaky.goes_on.set()
        with pytest.raises(StoreFailure):
            await telling
        await settling

    with_shaky(script)


def test_the_first_one_tells_whether_the_file_can_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    store = DeferredStore(SqliteStore(blocked / "answers.sqlite3"), ROOM)
    with pytest.raises(StoreFailure, match="opened"):
        keep(store, (b"k", b"v"))


def test_who_is_cut_off_takes_nobody_with_it() -> None:
    async def script(store: DeferredStore, shaky: Shaky) -> None:
        await store.keep([Entry(b"a", b"v")], ())
        leaving = asyncio.create_task(store.keep([Entry(b"large", b"x" * ROOM)], ()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        leaving.cancel()
        await store.settle()
        assert shaky.get(b"a") == b"v"

    with_shaky(script)


def test_what_another_gateway_has_not_written_yet_is_waited_for(path: Path) -> None:
    async def script() -> None:
        ours, theirs = (DeferredStore(SqliteStore(path), 1 << 20) for _ in range(2))
        await theirs.keep([Entry(b"first", b"v")], ())
        await theirs.keep([Entry(b"a", b"v")], ())
        assert ours.get(b"a") is None
        near = await ours.near([b"first", b"a", b"none"])
        assert [near.get(key) for key in (b"first", b"a", b"none")] == [b"v", b"v", None]

    asyncio.run(script())


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["get", "keep", "delete", "large", "settle", "wait", "again"]),
        st.sampled_from([b"a", b"b", b"c"]),
    ),
    max_size=30,
)


@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_it_has_what_a_store_has_that_writes_at_once(steps: list[tuple[str, bytes]]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(compared(Path(folder) / "answers.sqlite3", steps))


async def compared(path: Path, steps: list[tuple[str, bytes]]) -> None:
    file = SqliteStore(path)
    store, known = DeferredStore(file, ROOM), MemoryStore()
    said: dict[str, int] = {"keep": 10, "delete": 0, "large": ROOM}
    for number, (step, key) in enumerate(steps):
        if step in said:
            entries = [Entry(key, b"%d" % number * said[step])]
            for one in (store, known):
                await one.keep(entries, [b"a"])
        elif step == "again":  # a loop that has ended wrote nothing more
            await store.settle()
            store.close()
            store = DeferredStore(file, ROOM)
        elif step == "wait":
            await asyncio.sleep(0.012)
        elif step == "settle":
            await store.settle()
            assert (file.get(key) or b"") == (known.get(key) or b"")
        assert (store.get(key) or b"") == (known.get(key) or b"")
    await store.settle()
    assert all((file.get(key) or b"") == (known.get(key) or b"") for key in (b"a", b"b", b"c"))
    file.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_all_is_in_the_file_when_the_gateway_ends_and_sooner_with_workers(
    tmp_path: Path, workers: int
) -> None:
    file = tmp_path / "memories-answers.sqlite3"
    section = f'store = "file"\npath = "{tmp_path / "memories.sqlite3"}"'
    text = f"[server]\nworkers = {workers}\n" + DEMO.replace('store = "off"', section)
    app = create(config.parse(text, environment={}), io.StringIO())
    assert isinstance(app.chat.runtime.answers, DeferredStore) is (workers == 1)

    async def script() -> None:
        begun, ends = asyncio.Event(), asyncio.Event()
        ends.set()

        async def receive() -> Message:
            await ends.wait()
            ends.clear()
            return {"type": "lifespan"}

        async def send(_: Message) -> None:
            begun.set()

        lasting = asyncio.create_task(app({"type": "lifespan"}, receive, send))
        await begun.wait()
        for count in range(1, 4):
            asked = {"model": "demo", "input": "hi"}
            await Door(app, io.StringIO()).ask(asked, path="/v1/responses")
            if workers > 1:
                assert rows(file) == count
        ends.set()
        await lasting

    asyncio.run(script())
    assert rows(file) == 3


def rows(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM memory").fetchone()
    return int(count)
