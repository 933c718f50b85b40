"""Every way cassettes refuse a request:

BadRequest
├── CassetteRefused     400, 403   what was asked of cassettes cannot be had
└── CassetteMiss        422        no recorded turn answers this ask
"""

from __future__ import annotations

import asyncio

from adapters.errors import BadRequest


class CassetteRefused(BadRequest):
    """A name, a mode or a permission; `code` says which."""


class CassetteMiss(BadRequest):
    """422: neither the SDKs' retries nor an agent's own repair of its history answers to it.

    408, 409, 429 and 5xx are asked again by the OpenAI SDKs, 404 starts fallbacks, and some agents
    read a 400 as a full context, which they shorten and send again.
    """

    status, code = 422, "cassette_miss"

    def __init__(self, message: str, *, code: str | None = None, status: int | None = None) -> None:
        super().__init__(message, code=code, status=status)
        self.headers = {"x-should-retry": "false"}


class UnreadableCassette(Exception):
    """A file that is no cassette; says where and what was expected."""

    def __init__(self, path: str, text: str, line: int = 0, column: int = 0) -> None:
        where = path + (f", line {line}" if line else "") + (f", column {column}" if column else "")
        super().__init__(f"{where}: {text}")
        self.line = line


class ConnectionCut(asyncio.CancelledError):
    """The client's connection is to end here, as when a gateway dies: a fault that is meant."""
