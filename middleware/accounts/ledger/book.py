"""`Book`: what the ledger asks of a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from middleware.accounts.ledger.rows import COLUMNS, Row

By = Literal["model", "client", "day", "upstream"]
CREATE = f"CREATE TABLE IF NOT EXISTS usage ({', '.join(f'{n} {t}' for n, t in COLUMNS.items())})"
INDEX = "CREATE INDEX IF NOT EXISTS usage_time ON usage (time)"


class LedgerAway(Exception):
    """The database cannot be read or written now; why, in words."""


class Book(Protocol):
    """Its methods may take a while; what they raise is `LedgerAway`."""

    days: str
    """The day of a row, in this database's words."""

    def write(self, rows: Sequence[Row]) -> None:
        """Write all of them or none; a row that is there already stays. One thread calls this."""

    def read(self, question: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        """Ask in SQL, in any thread."""

    def close(self) -> None:
        """Let go, in the thread that wrote."""
