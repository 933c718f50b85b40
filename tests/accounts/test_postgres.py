"""The ledger in a real PostgreSQL."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from adapters.protocol import Usage
from middleware.accounts.ledger import Ledger, LedgerAway
from middleware.accounts.ledger.postgres import PostgresBook
from middleware.accounts.usage import UsageQuestion, usage_of
from middleware.server.visits import Visit
from tests.accounts.counting import called, until, visit
from tests.accounts.postgres import PostgresServer


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    postgres = PostgresServer()
    try:
        postgres.start()
        yield postgres
    finally:
        postgres.remove()


def ended(name: str) -> Visit:
    found = visit(called("demo", Usage(1000, 100)), name=name)
    found.spent, found.cost = Usage(1000, 100, cached=5), 0.25
    return found


def test_rows_are_written_once_and_added_up(server: PostgresServer) -> None:
    async def script() -> None:
        ledger = Ledger(PostgresBook(server.url), print)
        await ledger.start()
        for number in (1, 2, 3, 3):
            ledger.ended(ended(f"req_{number}"), 2.0)
        await until(lambda: not ledger.pending, 20)
        ledger.ended(ended("req_4"), 2.0)
        await ledger.close()

    asyncio.run(script())
    book = PostgresBook(server.url)
    found = usage_of(book, UsageQuestion("model", client="alpha"))
    figures = {
        "requests": 4,
        "prompt_tokens": 4000,
        "cached_tokens": 20,
        "cache_write_tokens": 0,
        "completion_tokens": 400,
        "reasoning_tokens": 0,
        "cost": 1.0,
    }
    assert found == {
        "object": "list",
        "data": [{"model": "demo", **figures}],
        "total": figures,
    }
    today = datetime.now(UTC).date()
    days = usage_of(book, UsageQuestion("day"))["data"]
    assert [row["day"] for row in days] == [today.isoformat()]
    assert usage_of(book, UsageQuestion("day", until=date(2020, 1, 1)))["data"] == []
    assert usage_of(book, UsageQuestion("client", client="beta"))["data"] == []


def test_it_may_come_and_go(server: PostgresServer) -> None:
    said: list[str] = []

    async def script() -> None:
        ledger = Ledger(PostgresBook(server.url), said.append)
        await ledger.start()
        await until(lambda: ledger.well, 20)
        await asyncio.to_thread(server.stop)
        ledger.ended(ended("req_5"), 2.0)
        await until(lambda: not ledger.well, 20)
        await asyncio.to_thread(server.start)
        await until(lambda: not ledger.pending, 20)
        await ledger.close()

    asyncio.run(script())
    assert [one.partition(",")[0] for one in said] == ["away", "back"]


def test_where_nobody_listens_it_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    book = PostgresBook(f"postgresql://x@127.0.0.1:{port}/x")
    with pytest.raises(LedgerAway, match="PostgreSQL"):
        usage_of(book, UsageQuestion())
    with pytest.raises(LedgerAway, match="PostgreSQL"):
        book.write([])
    book.close()
