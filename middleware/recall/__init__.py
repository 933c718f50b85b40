"""What an upstream needs back and an OpenAI client does not send: thoughts, ids, order."""

from middleware.recall.adapter import Recall
from middleware.recall.sqlite import SqliteStore, foreign
from middleware.recall.store import Entry, Limits, MemoryStore, Store, StoreFailure

__all__ = (
    "Entry",
    "Limits",
    "MemoryStore",
    "Recall",
    "SqliteStore",
    "Store",
    "StoreFailure",
    "foreign",
)
