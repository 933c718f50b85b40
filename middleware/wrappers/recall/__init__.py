"""What an upstream needs back and an OpenAI client does not send: thoughts, ids, order."""

from middleware.wrappers.recall.adapter import Recall
from middleware.wrappers.recall.sqlite import SqliteStore, foreign
from middleware.wrappers.recall.store import Entry, Limits, MemoryStore, Store, StoreFailure

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
