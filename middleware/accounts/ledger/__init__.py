"""The ledger: a row a request, written off the path of requests.

`writer.py` is the thread that writes, `rows.py` what a row says, `book.py` what a database has to
do; `sqlite.py` and `postgres.py` do it.
"""

from middleware.accounts.ledger.book import Book, LedgerAway
from middleware.accounts.ledger.homes import open_book
from middleware.accounts.ledger.writer import Ledger

__all__ = ("Book", "Ledger", "LedgerAway", "open_book")
