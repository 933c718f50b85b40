"""What a client may have: requests and tokens a minute, requests at once, money in a period."""

from __future__ import annotations

from math import ceil
from typing import Literal, NamedTuple

from adapters.errors import Again, GatewayError
from middleware.accounts.budgets import Terms
from middleware.config import ClientConfig
from middleware.state.store import CounterLimit

Limit = Literal["requests", "tokens", "concurrent", "budget"]
MINUTE = 60.0
_LONGEST_REQUEST = 3600.0
_RESET = b"60s"
"""When a minute's limit is whole again, if nothing more is asked."""


class LimitReached(GatewayError):
    """A limit of the client, not of an upstream."""

    status, type, code = 429, "rate_limit_error", "rate_limit_exceeded"
    again: Again = "same"

    def __init__(self, limit: Limit, told: str, wait: float | None) -> None:
        seconds = None if wait is None else str(max(1, ceil(wait)))
        super().__init__(told, retry_after=seconds)
        self.limit = limit
        if limit == "budget":
            self.type = self.code = "insufficient_quota"
            self.again = "never"
        elif limit != "concurrent":
            self.type = limit


class MinuteLimit(NamedTuple):
    """So much a minute, with its headers as they are of most answers."""

    counter: str
    most: int
    limit: tuple[bytes, bytes]
    remaining: bytes
    """The name alone."""
    reset: tuple[bytes, bytes]

    @classmethod
    def of(cls, what: str, client: str, most: int) -> MinuteLimit:
        names = [f"x-ratelimit-{word}-{what}".encode() for word in ("limit", "remaining", "reset")]
        limit, remaining, reset = names
        return cls(f"{what}:{client}", most, (limit, b"%d" % most), remaining, (reset, _RESET))


class ClientLimits:
    """What a client may have, made ready once for all its requests."""

    __slots__ = ("concurrent", "entering", "minutes", "requests", "said", "terms", "tokens")

    def __init__(self, said: ClientConfig) -> None:
        self.said = said
        requests = MinuteLimit.of("requests", said.id, said.requests_per_minute or 0)
        tokens = MinuteLimit.of("tokens", said.id, said.tokens_per_minute or 0)
        self.minutes = [one for one in (requests, tokens) if one.most]
        # Never settled: it counts from its beginning, however long it takes.
        self.requests = CounterLimit(requests.counter, requests.most, MINUTE)
        self.tokens = CounterLimit(tokens.counter, tokens.most, MINUTE)
        concurrent = f"concurrent:{said.id}"
        self.concurrent = CounterLimit(concurrent, said.concurrent or 0, _LONGEST_REQUEST)
        self.entering = [(one, 1.0) for one in (self.requests, self.concurrent) if one.limit]
        """What each request takes before its body is read."""
        self.terms = Terms(said.id, said.budget) if said.budget is not None else None


def limits_of(said: ClientConfig) -> ClientLimits | None:
    """None: it has no limits."""
    limits = said.requests_per_minute, said.tokens_per_minute, said.concurrent, said.budget
    return ClientLimits(said) if any(limits) else None
