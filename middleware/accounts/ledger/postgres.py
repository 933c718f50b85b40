"""The ledger in PostgreSQL, for several gateways."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from middleware.accounts.ledger.book import CREATE, INDEX, LedgerAway
from middleware.accounts.ledger.rows import COLUMNS, Row

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

_PATIENCE = 10.0
"""Seconds for one batch or question."""
_FIELDS = tuple(COLUMNS)
_INSERT = (
    f"INSERT INTO usage ({', '.join(COLUMNS)}) VALUES ({', '.join(f':{n}' for n in COLUMNS)}) "
    "ON CONFLICT (id) DO NOTHING"
)
_Result = TypeVar("_Result")


class PostgresBook:
    days = "to_char(to_timestamp(time) AT TIME ZONE 'UTC', 'YYYY-MM-DD')"

    def __init__(self, url: str) -> None:
        self._url = url
        self._runner: asyncio.Runner | None = None
        self._engine: AsyncEngine | None = None
        self._there = False

    def write(self, rows: Sequence[Row]) -> None:
        self._runner = self._runner or asyncio.Runner()
        named = [dict(zip(_FIELDS, row, strict=True)) for row in rows]
        self._runner.run(_within(self._write(named)))

    async def _write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        from sqlalchemy import text

        if self._engine is None:
            self._engine = _engine(self._url)
        async with self._engine.begin() as connection:
            if not self._there:
                await connection.execute(text(CREATE))
                await connection.execute(text(INDEX))
            if rows:
                await connection.execute(text(_INSERT), rows)
        self._there = True

    def read(self, question: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        return asyncio.run(_within(self._read(question, values)))

    async def _read(self, question: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        from sqlalchemy import text

        engine = _engine(self._url)  # the other one is of the thread that writes
        try:
            async with engine.connect() as connection:
                return (await connection.execute(text(question), values)).all()
        finally:
            await engine.dispose()

    def close(self) -> None:
        if self._runner is not None:
            if self._engine is not None:
                self._runner.run(_within(self._engine.dispose()))
            self._runner.close()


async def _within(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Do it in time, with one way to fail."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        async with asyncio.timeout(_PATIENCE):
            return await work
    except (SQLAlchemyError, OSError, TimeoutError, ImportError) as error:
        told = str(error).partition("\n")[0]
        raise LedgerAway(f"PostgreSQL: {told or type(error).__name__}") from error


def _engine(url: str) -> AsyncEngine:
    from sqlalchemy import make_url
    from sqlalchemy.ext.asyncio import create_async_engine

    address = make_url(url).set(drivername="postgresql+asyncpg")
    # libpq's word, which people write, and asyncpg's.
    query = {("ssl" if name == "sslmode" else name): told for name, told in address.query.items()}
    return create_async_engine(address.set(query=query), pool_size=1, max_overflow=0)
