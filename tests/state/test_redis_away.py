"""Redis dies, stops, forgets, comes back: no request waits long, and what was spent is spent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from middleware.state.redis import RedisState
from middleware.state.store import Hold
from tests.state.server import RedisServer
from tests.state.test_redis import gateways, hold, until


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    redis = RedisServer(tmp_path_factory.mktemp("redis"))
    redis.start()
    try:
        yield redis
    finally:
        redis.kill()


async def spend(state: RedisState, request: str, amount: float, limit: float = 10.0) -> bool:
    taken = await state.take(request, [hold("usd:a", 0.1, limit)])
    if not taken.refused:
        await state.settle(request, {"usd:a": amount})
    return not taken.refused


def test_what_was_spent_without_redis_is_added_when_it_is_back_though_it_forgot(
    server: RedisServer,
) -> None:
    async def run() -> None:
        async with gateways(server) as ((one, two), said):
            assert await spend(one, "a", 4.0)
            assert await spend(two, "b", 2.0)
            server.kill()
            assert await spend(one, "c", 3.0)  # it knew of 4
            assert await spend(two, "d", 1.0)  # of 6
            await until(lambda: not one.well and not two.well and len(said) == 2)
            await one.mark("rest:a#1", "limited", 60)
            assert (await one.read(["rest:a#1"]))[0] is not None
            server.start()
            await until(lambda: one.well and two.well)
            assert await two.sums(["usd:a"]) == [10.0]
            assert not await spend(one, "e", 1.0)
            assert [mark and mark.text for mark in await two.read(["rest:a#1"])] == ["limited"]
            assert [text.split(":")[0].split(" (")[0] for text in said] == [
                *["Redis is away"] * 2,
                *["Redis is back"] * 2,
            ]

    asyncio.run(run())


def test_a_gateway_counts_for_itself_meanwhile(server: RedisServer) -> None:
    async def run() -> None:
        async with gateways(server) as ((one, two), _):
            holds = [hold("requests:a", 1, 20)]
            assert not (await one.take("before", holds)).refused
            server.kill()
            for state, free in ((one, 19), (two, 20)):
                taken = [await state.take(f"{number}", holds) for number in range(40)]
                assert sum(not each.refused for each in taken) == free

    asyncio.run(run())


@pytest.mark.parametrize("what", ["kill", "freeze"])
def test_no_request_waits_long(server: RedisServer, what: str) -> None:
    async def run() -> None:
        async with gateways(server, 1) as ((state,), said):
            waited: list[float] = []

            async def client(name: str, ends: float) -> None:
                number = 0
                while time.monotonic() < ends:
                    number += 1
                    begun = time.monotonic()
                    await state.take(f"{name}{number}", [hold("requests:a"), hold("usd:a")])
                    await state.read(["moved:a", "rest:a"])
                    await state.settle(f"{name}{number}", {"requests:a": 1.0, "usd:a": 0.5})
                    waited.append(time.monotonic() - begun)
                    await asyncio.sleep(0.01)

            ends = time.monotonic() + 2.0
            clients = [asyncio.create_task(client(f"c{at}-", ends)) for at in range(8)]
            await asyncio.sleep(0.4)
            getattr(server, what)()
            await asyncio.gather(*clients)
            assert max(waited) < 1.0
            assert not state.well
            assert len(said) == 1
            server.thaw() if what == "freeze" else server.start()
            await until(lambda: state.well)
            # Each was counted once, also what lay in Redis while it was stopped.
            assert await state.sums(["usd:a"]) == [len(waited) * 0.5]

    asyncio.run(run())


def test_it_starts_without_redis(server: RedisServer) -> None:
    async def run() -> None:
        server.kill()
        said: list[str] = []
        state = RedisState(server.url, said.append)
        assert await spend(state, "a", 4.0)
        assert not state.well
        assert len(said) == 1
        server.start()
        await until(lambda: state.well)
        assert await state.sums(["usd:a"]) == [4.0]
        await state.close()

    asyncio.run(run())


def test_what_a_request_took_is_given_back_though_its_client_left(server: RedisServer) -> None:
    async def run() -> None:
        async with gateways(server, 1) as ((state,), _):
            for number in range(50):
                task = asyncio.create_task(
                    state.take(f"r{number}", [Hold("open:a", 1, float("inf"), 3600)])
                )
                await asyncio.sleep(number / 10_000)
                task.cancel()
                await asyncio.wait([task])
                await state.settle(f"r{number}", {"open:a": 0})
            assert await state.sums(["open:a"]) == [0]

    asyncio.run(run())


def test_redis_is_told_no_more_than_counts(server: RedisServer) -> None:
    """A Redis that cannot be written to is of no use: it counts as away."""

    async def run() -> None:
        async with gateways(server, 1) as ((state,), said):
            client = state.connection._client.redis
            await client.execute_command("REPLICAOF", "127.0.0.1", "1")
            assert await spend(state, "a", 4.0)
            await until(lambda: len(said) == 1)
            assert "READONLY" in said[0] or "read only" in said[0]
            await client.execute_command("REPLICAOF", "NO", "ONE")
            await until(lambda: state.well)
            assert await state.sums(["usd:a"]) == [4.0]

    asyncio.run(run())
