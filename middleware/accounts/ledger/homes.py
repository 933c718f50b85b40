"""Which database a config's ledger is in."""

from __future__ import annotations

from middleware.accounts.ledger.book import Book
from middleware.accounts.ledger.sqlite import SqliteBook
from middleware.config import Config
from middleware.state.homes import file_of, own_file


def open_book(config: Config) -> Book | None:
    """None: usage is not written down. Nothing is opened before it is first used."""
    url = config.ledger.url or ""
    if url == "off" or not (url or config.stamp):  # of no file there is none beside it
        return None
    if url.startswith("postgresql"):
        from middleware.accounts.ledger.postgres import PostgresBook

        return PostgresBook(url)
    return SqliteBook(file_of(url) if url else own_file(config, "ledger"))
