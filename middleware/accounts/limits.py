"""What a client may have: requests and tokens a minute, requests at once, money in a period."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from math import ceil, inf
from typing import Literal

from adapters.errors import Again, GatewayError
from middleware.accounts.budgets import Term, Terms
from middleware.config import ClientConfig, SpendingLimit
from middleware.state.store import CounterLimit, State, Taken, Waiting, Wanted

Limit = Literal["requests", "tokens", "concurrent", "budget"]
_MINUTE = 60.0
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


class MinuteLimit:
    """So much a minute, with its headers as they are of most answers."""

    __slots__ = ("counter", "limit", "most", "remaining", "reset")

    def __init__(self, what: str, client: str, most: int) -> None:
        self.counter, self.most = f"{what}:{client}", most
        self.limit = f"x-ratelimit-limit-{what}".encode(), b"%d" % most
        self.remaining = f"x-ratelimit-remaining-{what}".encode()
        """The name alone."""
        self.reset = f"x-ratelimit-reset-{what}".encode(), _RESET


class ClientLimits:
    """What a client may have, made ready once for all its requests."""

    __slots__ = ("concurrent", "entering", "minutes", "requests", "said", "terms", "tokens")

    def __init__(self, said: ClientConfig) -> None:
        self.said = said
        requests = MinuteLimit("requests", said.id, said.requests_per_minute or 0)
        tokens = MinuteLimit("tokens", said.id, said.tokens_per_minute or 0)
        self.minutes = [one for one in (requests, tokens) if one.most]
        # Never settled: it counts from its beginning, however long it takes.
        self.requests = CounterLimit(requests.counter, requests.most, _MINUTE)
        self.tokens = CounterLimit(tokens.counter, tokens.most, _MINUTE)
        concurrent = f"concurrent:{said.id}"
        self.concurrent = CounterLimit(concurrent, said.concurrent or 0, _LONGEST_REQUEST)
        self.entering = [(one, 1.0) for one in (self.requests, self.concurrent) if one.limit]
        """What each request takes before its body is read."""
        self.terms = Terms(said.id, said.budget) if said.budget is not None else None


def limits_of(said: ClientConfig) -> ClientLimits | None:
    """None: it has no limits."""
    limits = said.requests_per_minute, said.tokens_per_minute, said.concurrent, said.budget
    return ClientLimits(said) if any(limits) else None


class Allowance:
    """What one request takes of its client's limits: all of it is given back or settled."""

    __slots__ = ("_claims", "_full", "_limits", "_reset", "_term")

    def __init__(self, state: State, limits: ClientLimits, request: str) -> None:
        self._claims = state.claims(request)
        self._limits = limits
        self._term: Term | None = None
        self._full, self._reset = "", b""
        """The minute's limit that refused it, and when it lets in again."""

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """`x-ratelimit-*` of its limits."""
        told: list[tuple[bytes, bytes]] = []
        sums, full = self._claims.sums, self._full
        for minute in self._limits.minutes:
            counter, reset = minute.counter, minute.reset
            if counter in sums:
                left = max(0, minute.most - sums[counter])
                if counter == full:
                    reset = reset[0], self._reset
                told += minute.limit, (minute.remaining, b"%d" % left), reset
        return told

    def enter(self) -> Waiting:
        """Take a place among its requests, or raise `LimitReached`: before its body is read."""
        return self._take(self._limits.entering)

    def reserve(self, tokens: float, cost: float, beyond: bool = False) -> Waiting:
        """Take what it is likely to use, or raise `LimitReached`; with `beyond`, take it anyway."""
        limits, wanted = self._limits, []
        if limits.tokens.limit:
            wanted.append((limits.tokens, tokens))
        if limits.terms is not None:
            if self._term is None:  # all of a request is of the term it began in
                self._term = limits.terms.at(time.time())
            wanted.append((self._term.limit, cost))
        if beyond:
            wanted = [(replace(limit, limit=inf), amount) for limit, amount in wanted]
        return self._take(wanted)

    def _take(self, wanted: Sequence[Wanted]) -> Waiting:
        taken = self._claims.take(wanted) if wanted else None
        if taken is None:
            return None
        if isinstance(taken, Taken):
            raise self._refusal(taken)
        return self._hear(taken)

    async def _hear(self, taken: Awaitable[Taken | None]) -> None:
        if refused := await taken:
            raise self._refusal(refused)

    def settle(self, tokens: int, cost: float, none: bool = False) -> Waiting:
        """Say what it really used; `none`: it is not to count as a request."""
        limits = self._limits
        amounts = {limits.concurrent.counter: 0.0, limits.tokens.counter: float(tokens)}
        if self._term is not None:
            amounts[self._term.counter] = cost
        if none:
            amounts[limits.requests.counter] = 0.0
        return self._claims.settle(amounts)

    def _refusal(self, taken: Taken) -> LimitReached:
        said, name = self._limits.said, taken.refused.partition(":")[0]
        if said.budget and self._term is not None and taken.refused == self._term.counter:
            wait = self._term.wait(time.time())
            return LimitReached("budget", _spent(said.budget), wait)
        if name == "concurrent":
            told = f"This client has {said.concurrent} requests at work, as many as it may have."
            return LimitReached("concurrent", f"{told} Wait for one to end.", 1.0)
        limit: Limit = "requests" if name == "requests" else "tokens"
        most = said.requests_per_minute if limit == "requests" else said.tokens_per_minute
        self._full, self._reset = taken.refused, b"%ds" % max(1, ceil(taken.wait))
        told = f"This client may use {most} {limit} a minute, and has."
        wait = min(taken.wait, _MINUTE)
        return LimitReached(limit, f"{told} Send the request again later.", wait)


def _spent(budget: SpendingLimit) -> str:
    period = "in all" if budget.period == "total" else f"a {budget.period}"
    return (
        f"This client's budget is spent: {budget.amount:g} USD {period}. More is a matter of its "
        "`budget` under [clients] in the gateway's config."
    )
