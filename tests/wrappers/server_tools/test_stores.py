"""Hidden rounds outlast the process that heard them, and are found by other gateways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from adapters.protocol import Json
from middleware import config
from middleware.building import open_store
from middleware.state.memory import MemoryState
from middleware.state.redis import RedisState
from middleware.wrappers.recall import MemoryStore, RedisStore, SqliteStore, Store
from middleware.wrappers.recall.store import Entry
from tests.state.server import RedisServer
from tests.support.adapters import FakeAdapter, Script
from tests.support.fold import Answer, fold
from tests.support.tools import FakeShelf
from tests.wrappers.server_tools.rounds import (
    CLIENT_TOOL,
    USER,
    asked,
    calling,
    echo,
    result,
    said,
    saying,
    wrapped,
)

Open = Callable[[], AbstractAsyncContextManager[Store]]
"""A gateway's own."""


@pytest.fixture(params=["file", "redis"])
def gateway(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "redis":
        url = request.getfixturevalue("server").url
        return lambda: _over_redis(url)
    return lambda: _in_file(tmp_path / "recall.sqlite3")


@asynccontextmanager
async def _in_file(path: Path) -> AsyncIterator[Store]:
    store = SqliteStore(path)
    yield store.rounds()
    store.close()


@asynccontextmanager
async def _over_redis(url: str) -> AsyncIterator[Store]:
    state = RedisState(url, lambda _: None)
    await state.sums(())
    yield RedisStore(state.connection).rounds()
    await state.close()


async def told(store: Store, answer: Script, *messages: Json) -> tuple[Answer, Sequence[Json]]:
    """What a client gets of a gateway with this store, and what its model is asked at last."""
    model = FakeAdapter(answer, saying("It is sunny."))
    adapter = wrapped(model, FakeShelf(w__now="sunny"), store)
    return await fold(adapter.stream(asked(*messages, tools=(CLIENT_TOOL,)))), model.last()


def test_another_gateway_puts_mixed_turns_together(gateway: Open) -> None:
    async def run() -> None:
        mixed = calling(("c1", "now", "{}"), ("c2", "mine", '{"x": 7}'), text="Wait.")
        async with gateway() as store:
            got, _ = await told(store, mixed, USER)
        turn, back = echo(got), result("c2", "seven")
        expected = [
            ("user", USER["content"]),
            ("assistant", ("Wait.", "now", "mine")),
            ("tool", "sunny"),
            ("tool", "seven"),
        ]
        async with gateway() as store:
            ended, heard = await told(store, calling(("c3", "now", "{}")), USER, turn, back)
            assert said(heard)[:4] == expected
        async with gateway() as store:
            more: Json = {"role": "user", "content": "and now?"}
            _, heard = await told(store, saying("Next."), USER, turn, back, echo(ended), more)
            assert said(heard) == [
                *expected,
                ("assistant", (None, "now")),
                ("tool", "sunny"),
                ("assistant", "It is sunny."),
                ("user", "and now?"),
            ]

    asyncio.run(run())


def test_what_is_too_large_is_told(gateway: Open) -> None:
    async def run() -> None:
        async with gateway() as store:
            model = FakeAdapter(calling(("c1", "now", "{}")), saying("End"))
            adapter = wrapped(model, FakeShelf(w__now="x" * (5 << 20)), store)
            got = await fold(adapter.stream(asked()))
            assert (got.text, got.notes) == ("End", ["recall_not_kept"])

    asyncio.run(run())


def test_while_redis_is_away_the_receipt_says_so(server: RedisServer) -> None:
    async def run() -> None:
        async with _over_redis(server.url) as store:
            server.kill()
            got, _ = await told(store, calling(("c1", "now", "{}")), USER)
            assert (got.text, got.notes) == ("It is sunny.", ["recall_not_kept"])
            _, heard = await told(store, saying("Next."), USER, echo(got), USER)
            assert len(heard) == 3
        server.start()

    asyncio.run(run())


def test_thoughts_and_rounds_have_one_half_of_the_room_each() -> None:
    text = (
        '[recall]\nstore = "memory"\nmax_bytes = 100000\n[upstreams.u]\nkind = "ollama"\n'
        '[models.m]\nupstream = "u"\nname = "m"\n'
    )
    store = open_store(config.parse(text, environment={}), MemoryState())
    assert isinstance(store, MemoryStore)
    value = b"x" * 1000

    async def run() -> None:
        for one in (store, store.rounds()):
            for number in range(100):
                await one.keep([Entry(b"%d" % number, value)], ())
            found = sum(one.get(b"%d" % number) is not None for number in range(100))
            assert 40 <= found <= 50

    asyncio.run(run())
