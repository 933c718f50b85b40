"""What workers keep and count is told as one, whichever is asked."""

from __future__ import annotations

import asyncio
import io

from middleware import config
from middleware.server.app import Gateway, create
from middleware.server.visits import Visit
from tests.server.workers.machine import CONFIG, Machine, machine


async def gateway(here: Machine) -> Gateway:
    member = await here.worker()
    return create(config.parse(CONFIG, environment={}), io.StringIO(), member=member)


def serve(gateway: Gateway, identity: str, owner: str = "") -> None:
    """As if it had answered a request."""
    visit = Visit(identity, 0.0, model="m", status=200)
    gateway.chat.records.begin(visit, owner)
    gateway.chat.records.end(visit, 1.0)
    gateway.vitals.tally.ended(visit, 1.0)


async def counted(gateway: Gateway, name: str = "usetool_requests_total") -> float:
    return sum(numbers[0] for _, numbers in (await gateway.vitals.scrape())[name])


def test_counts_are_of_all_and_never_go_back() -> None:
    async def run() -> None:
        async with machine() as here:
            one, two = await gateway(here), await gateway(here)
            for number in range(5):
                serve(one if number < 3 else two, f"req_{number}")
            assert await counted(one) == await counted(two) == 5
            one.chat.open_requests = 4
            assert await counted(two, "usetool_open_requests") == 4
            await here.kill(0)
            assert await counted(two) == 5
            assert await counted(two, "usetool_open_requests") == 0
            third = await gateway(here)
            serve(third, "req_6")
            assert await counted(third) == await counted(two) == 6

    asyncio.run(run())


def test_the_last_requests_are_of_all_and_each_for_its_own_key() -> None:
    async def run() -> None:
        async with machine() as here:
            one, two = await gateway(here), await gateway(here)
            serve(one, "req_1", "alice")
            serve(one, "req_2", "bob")
            elsewhere = two.chat.elsewhere
            assert elsewhere is not None
            listed = await elsewhere.summaries("alice")
            assert [said["id"] for _, said in listed] == ["req_1"]
            assert len(await elsewhere.summaries(None)) == 2
            whole = await elsewhere.whole("alice", "req_1", "http://gateway.test")
            assert whole is not None
            assert (whole["id"], whole["calls"]) == ("req_1", [])
            assert await elsewhere.whole("alice", "req_2", "") is None
            await here.kill(0)
            assert await elsewhere.summaries(None) == []

    asyncio.run(run())
