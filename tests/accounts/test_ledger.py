"""Rows are written, whatever the database does meanwhile."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from adapters.errors import Busy
from adapters.protocol import Usage
from middleware.accounts.ledger import Ledger, open_book
from middleware.accounts.ledger.rows import COLUMNS, row_of
from middleware.accounts.ledger.sqlite import SqliteBook
from middleware.server.visits import Visit
from tests.accounts.counting import MODELS, called, parsed, until, visit

SPENT = Usage(1000, 100, cached=600, cache_write=300, reasoning=40)


def ended(name: str = "req_1") -> Visit:
    found = visit(called("demo", SPENT), name=name)
    found.spent, found.cost = SPENT, 0.25
    return found


def rows(path: Path) -> list[dict[str, Any]]:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute("SELECT * FROM usage ORDER BY id")]


@asynccontextmanager
async def kept(path: Path) -> AsyncIterator[tuple[Ledger, list[str]]]:
    said: list[str] = []
    ledger = Ledger(SqliteBook(path), said.append)
    await ledger.start()
    try:
        yield ledger, said
    finally:
        await ledger.close()


def test_a_request_is_a_row(tmp_path: Path) -> None:
    async def script() -> None:
        async with kept(tmp_path / "new" / "ledger.db") as (ledger, _):
            ledger.ended(ended(), 3.5)
            await until(lambda: not ledger.pending)

    asyncio.run(script())
    (row,) = rows(tmp_path / "new" / "ledger.db")
    del row["time"]
    assert row == {
        "id": "req_1",
        "client": "alpha",
        "door": "chat",
        "operation": "chat",
        "model": "demo",
        "answered": "demo",
        "upstream": "up",
        "upstream_model": "model",
        "stream": 0,
        "status": 200,
        "outcome": "ok",
        "prompt_tokens": 1000,
        "cached_tokens": 600,
        "cache_write_tokens": 300,
        "completion_tokens": 100,
        "reasoning_tokens": 40,
        "cost": 0.25,
        "calls": 1,
        "seconds": 2.5,
        "first_event": None,
    }


def test_a_row_has_the_time_of_its_beginning_however_late_it_is_made() -> None:
    assert row_of(ended(), 3.5, 1_700_000_002.5)[[*COLUMNS].index("time")] == 1_700_000_000.0


def test_what_became_of_it_stands_in_the_row() -> None:
    failed, left = ended(), ended()
    failed.error, failed.status = Busy("no"), 503
    left.gone, left.status = True, 499
    place = [*COLUMNS].index("outcome")
    told = [row_of(one, 2.0, time.time())[place] for one in (failed, left)]
    assert told == ["overloaded", "client_gone"]


@pytest.mark.parametrize("spent", [Usage(1 << 70, -5), Usage(1 << 70, 0), Usage((1 << 53) + 1, 0)])
def test_what_no_database_takes_is_never_tried(tmp_path: Path, spent: Usage) -> None:
    strange = ended()
    strange.model, strange.spent = "a\0b", spent
    book = SqliteBook(tmp_path / "ledger.db")
    book.write([row_of(strange, 2.0, time.time())])
    book.close()
    (row,) = rows(tmp_path / "ledger.db")
    assert (row["model"], row["prompt_tokens"], row["completion_tokens"]) == ("ab", 1 << 53, 0)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 31, 32, 37, 70, 127, 128, 300])
@pytest.mark.parametrize("values", [999, None])
def test_all_of_a_batch_are_written_in_their_own_words(
    tmp_path: Path, count: int, values: int | None
) -> None:
    book = SqliteBook(tmp_path / "ledger.db")
    book.write([row_of(ended("req_0"), 2.0, time.time())])
    if values is not None:  # as an older SQLite
        assert book._connection is not None
        book._connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, values)
    batch = [row_of(ended(f"req_{at}"), 2.0, time.time()) for at in range(count)]
    book.write(batch)  # the first of them stands there already
    book.close()
    written = {row["id"]: tuple(row.values()) for row in rows(tmp_path / "ledger.db")}
    assert written.keys() == {"req_0", *(row[0] for row in batch)}
    assert all(written[row[0]] == row for row in batch[1:])


def test_what_was_not_let_in_has_no_row(tmp_path: Path) -> None:
    async def script() -> None:
        async with kept(tmp_path / "ledger.db") as (ledger, _):
            refused = ended()
            refused.counted = False
            ledger.ended(refused, 2.0)
            assert ledger.pending == 0

    asyncio.run(script())
    assert rows(tmp_path / "ledger.db") == []


def test_at_the_end_all_rows_are_written_at_once(tmp_path: Path) -> None:
    async def script() -> None:
        async with kept(tmp_path / "ledger.db") as (ledger, _):
            for number in range(150):
                ledger.ended(ended(f"req_{number}"), 2.0)

    asyncio.run(script())
    assert len(rows(tmp_path / "ledger.db")) == 150


def test_a_locked_database_gets_its_rows_later(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def script() -> None:
        async with kept(path) as (ledger, said):
            lock = sqlite3.connect(path, isolation_level=None)
            lock.execute("BEGIN EXCLUSIVE")
            ledger.ended(ended("req_1"), 2.0)
            await until(lambda: not ledger.well)
            assert ledger.pending == 1
            ledger.ended(ended("req_2"), 2.0)
            lock.execute("ROLLBACK")
            lock.close()
            await until(lambda: not ledger.pending)
            await until(lambda: len(said) == 2)
            assert ledger.well
            assert said[0].startswith("away, its rows wait: ")
            assert said[1] == "back"

    asyncio.run(script())
    assert [row["id"] for row in rows(path)] == ["req_1", "req_2"]


def test_rows_that_can_never_be_written_are_counted_at_the_end(tmp_path: Path) -> None:
    said: list[str] = []

    async def script() -> None:
        (tmp_path / "file").write_text("no folder")
        ledger = Ledger(SqliteBook(tmp_path / "file" / "ledger.db"), said.append, last=0.1)
        await ledger.start()
        ledger.ended(ended(), 2.0)
        await ledger.close()

    asyncio.run(script())
    assert said[-1] == "could not be written: 1 rows are lost"


def test_a_row_is_written_once(tmp_path: Path) -> None:
    book = SqliteBook(tmp_path / "ledger.db")
    for _ in range(2):
        book.write([row_of(ended(), 2.0, time.time())])
    book.close()
    assert len(rows(tmp_path / "ledger.db")) == 1


@pytest.mark.parametrize("text", ['[ledger]\nurl = "off"', ""])
def test_without_an_address_or_a_file_of_the_config_there_is_none(text: str) -> None:
    assert open_book(parsed(text + MODELS)) is None
