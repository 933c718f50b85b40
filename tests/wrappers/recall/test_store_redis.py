"""Memories in Redis: found at every gateway, bounded, and named in the receipt while it is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapters.protocol import TURN, ChatRequest, Noted, Opened
from middleware.state.redis import RedisState
from middleware.wrappers.recall import Limits, Recall, RedisStore
from middleware.wrappers.recall.store import Entry, Store, StoreFailure
from tests.state.server import RedisServer
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import answer, assistant, request, result, user
from tests.wrappers.recall.turns import ASKED, BLOCKS, CALLED


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    redis = RedisServer(tmp_path)
    redis.start()
    try:
        yield redis
    finally:
        redis.kill()


@asynccontextmanager
async def store(server: RedisServer, limits: Limits | None = None) -> AsyncIterator[RedisStore]:
    state = RedisState(server.url, lambda _: None)
    await state.sums(())
    yield RedisStore(state.connection, limits)
    await state.close()


async def asked(recall: Recall, said: ChatRequest) -> list[str]:
    """Codes of the receipt."""
    events = [event async for batch in recall.stream(said) for event in batch]
    receipts = [event.receipt for event in events if isinstance(event, Opened | Noted)]
    return [note.code for receipt in receipts for note in receipt]


async def found(store: Store, *keys: bytes) -> list[bytes | None]:
    near = await store.near(keys)
    return [near.get(key) for key in keys]


def test_a_thought_comes_back_whichever_gateway_takes_the_turn(server: RedisServer) -> None:
    async def run() -> None:
        model = FakeAdapter(
            answer("need it", said=[CALLED], turn=BLOCKS),
            answer("and this", "5℃", turn=BLOCKS),
            answer(text="bye"),
        )
        async with store(server) as one, store(server) as two:
            messages = [ASKED]
            assert await asked(Recall(model, one), request(*messages)) == []
            messages += [assistant(None, CALLED), result("toolu_1", "5℃")]
            assert await asked(Recall(model, two), request(*messages)) == ["thoughts_restored"]
            assert model.last()[1][TURN] == BLOCKS
            messages += [assistant("5℃"), user("thanks")]
            assert await asked(Recall(model, one), request(*messages)) == ["thoughts_restored"]
            assert [TURN in message for message in model.last()] == [0, 1, 0, 1, 0]

    asyncio.run(run())


def test_an_alike_conversation_keeps_its_own_thoughts(server: RedisServer) -> None:
    """The newer one has the key of what was said; the older is found by what came after it."""

    async def run() -> None:
        model = FakeAdapter(
            *(answer("mine", "Hello."), answer(text="", said=[CALLED])),
            *(answer("theirs", "Hello."), answer(text="5℃")),
        )
        async with store(server) as one:
            recall = Recall(model, one)
            messages = [user("hi")]
            await asked(recall, request(*messages))
            messages += [assistant("Hello."), ASKED]
            await asked(recall, request(*messages))
            await asked(recall, request(*messages[:1]))
            messages += [assistant(None, CALLED), result("toolu_1", "5℃")]
            await asked(recall, request(*messages))
            assert model.last()[1]["reasoning_content"] == "mine"

    asyncio.run(run())


def test_a_thought_nobody_asked_for_is_found_again(server: RedisServer) -> None:
    async def run() -> None:
        model = FakeAdapter(answer("unasked", said=[CALLED]), answer(text="5℃"))
        async with store(server) as one:
            recall = Recall(model, one, thinks=lambda _: False)
            await asked(recall, request(ASKED))
            await asked(recall, request(ASKED, assistant(None, CALLED), result("toolu_1", "5℃")))
            assert model.last()[1]["reasoning_content"] == "unasked"

    asyncio.run(run())


def test_while_it_is_away_the_receipt_says_so(server: RedisServer) -> None:
    async def run() -> None:
        model = FakeAdapter(answer("need it", said=[CALLED]), answer("why", "5℃"))
        async with store(server) as one:
            recall = Recall(model, one)
            server.kill()
            assert await asked(recall, request(ASKED)) == ["recall_not_kept"]
            said = request(ASKED, assistant(None, CALLED), result("toolu_1", "5℃"))
            assert await asked(recall, said) == ["recall_unavailable", "recall_not_kept"]

    asyncio.run(run())


def test_size_and_age_are_bounded_and_what_is_used_stays(server: RedisServer) -> None:
    async def run() -> None:
        async with store(server, Limits(max_bytes=40_000, max_entry=2000)) as one:
            await one.keep([Entry(b"used", b"u"), Entry(b"large", b"x" * 2001)], [])
            for number in range(100):
                await one.keep([Entry(b"%d" % number, b"x" * 1000)], [b"used"])
            kept = await found(one, *(b"%d" % number for number in range(100)))
            assert 20 <= sum(value is not None for value in kept) < 40
            assert kept[-1] == b"x" * 1000
            assert await found(one, b"used", b"large") == [b"u", None]
        async with store(server, Limits(max_age=0.3)) as one:
            await one.keep([Entry(b"old", b"v")], [])
            await asyncio.sleep(0.4)
            assert await found(one, b"old") == [None]

    asyncio.run(run())


def test_a_store_that_is_away_says_so(server: RedisServer) -> None:
    async def run() -> None:
        async with store(server) as one:
            server.kill()
            with pytest.raises(StoreFailure, match="Redis"):
                await one.keep([Entry(b"k", b"v")], [])
            with pytest.raises(StoreFailure, match="Redis"):
                await found(one, b"k")

    asyncio.run(run())


def test_rounds_of_tools_are_kept_apart(server: RedisServer) -> None:
    async def run() -> None:
        async with store(server, Limits(max_bytes=40_000)) as one:
            await one.keep([Entry(b"k", b"thought")], [])
            assert await found(one.rounds(), b"k") == [None]
            for number in range(100):
                await one.rounds().keep([Entry(b"%d" % number, b"x" * 1000)], [])
            kept = await found(one.rounds(), *(b"%d" % number for number in range(100)))
            assert 20 <= sum(value is not None for value in kept) < 40
            assert await found(one, b"k") == [b"thought"]

    asyncio.run(run())
