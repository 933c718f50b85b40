"""What a client may have: requests and tokens a minute, requests at once, money in a period."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import ceil, inf
from typing import Literal

from adapters.errors import Again, GatewayError
from middleware.accounts.budgets import Term, term_of
from middleware.config import ClientConfig, SpendingLimit
from middleware.state.store import Hold, State, Taken

Limit = Literal["requests", "tokens", "concurrent", "budget"]
_MINUTE = 60.0
_LONGEST_REQUEST = 3600.0
_RESET = "60s"
"""When a minute's limit is whole again, if nothing more is asked."""


class LimitReached(GatewayError):
    """A limit of the client, not of an upstream."""

    status, type, code = 429, "rate_limit_error", "rate_limit_exceeded"
    again: Again = "same"

    def __init__(
        self, limit: Limit, told: str, wait: float | None, headers: Mapping[str, str]
    ) -> None:
        seconds = None if wait is None else str(max(1, ceil(wait)))
        super().__init__(told, retry_after=seconds)
        self.limit = limit
        self.headers = headers
        if limit == "budget":
            self.type = self.code = "insufficient_quota"
            self.again = "never"
        elif limit != "concurrent":
            self.type = limit


def has_limits(said: ClientConfig | None) -> bool:
    return said is not None and any(
        (said.requests_per_minute, said.tokens_per_minute, said.concurrent, said.budget)
    )


class Allowance:
    """What one request takes of its client's limits: all of it is given back or settled."""

    __slots__ = (
        *("_concurrent", "_request", "_requests", "_said", "_state", "_term", "_tokens"),
        "headers",
    )

    def __init__(self, state: State, said: ClientConfig, request: str) -> None:
        self._state = state
        self._said = said
        self._request = request
        self._term: Term | None = None
        self._requests, self._tokens = f"requests:{said.id}", f"tokens:{said.id}"
        self._concurrent = f"concurrent:{said.id}"
        self.headers: dict[str, str] = {}
        """`x-ratelimit-*` of its limits."""

    async def enter(self) -> None:
        """Take a place among its requests, or raise `LimitReached`: before its body is read."""
        said, holds = self._said, []
        if said.requests_per_minute:
            # Never settled: it counts from its beginning, however long it takes.
            holds.append(Hold(self._requests, 1, said.requests_per_minute, _MINUTE))
        if said.concurrent:
            holds.append(Hold(self._concurrent, 1, said.concurrent, _LONGEST_REQUEST))
        if holds:
            self._check(await self._state.take(self._request, holds))

    async def reserve(self, tokens: float, cost: float, beyond: bool = False) -> None:
        """Take what it is likely to use, or raise `LimitReached`; with `beyond`, take it anyway."""
        said, holds = self._said, []
        if said.tokens_per_minute:
            holds.append(Hold(self._tokens, tokens, said.tokens_per_minute, _MINUTE))
        if said.budget:
            # All of a request is of the term it began in.
            self._term = term = self._term or term_of(said.id, said.budget, time.time())
            holds.append(Hold(term.counter, cost, said.budget.amount, term.left, sliding=False))
        if beyond:
            holds = [hold._replace(limit=inf) for hold in holds]
        if holds:
            self._check(await self._state.take(self._request, holds))

    async def settle(self, tokens: int, cost: float, none: bool = False) -> None:
        """Say what it really used; `none`: it is not to count as a request."""
        amounts = {self._concurrent: 0.0, self._tokens: float(tokens)}
        if self._term is not None:
            amounts[self._term.counter] = cost
        if none:
            amounts[self._requests] = 0.0
        await self._state.settle(self._request, amounts)

    def _check(self, taken: Taken) -> None:
        said, sums = self._said, taken.sums
        if said.requests_per_minute and (used := sums.get(self._requests)) is not None:
            self.headers |= _told("requests", said.requests_per_minute, used)
        if said.tokens_per_minute and (used := sums.get(self._tokens)) is not None:
            self.headers |= _told("tokens", said.tokens_per_minute, used)
        if taken.refused:
            raise self._refusal(taken)

    def _refusal(self, taken: Taken) -> LimitReached:
        said, name = self._said, taken.refused.partition(":")[0]
        if said.budget and self._term is not None and taken.refused == self._term.counter:
            wait = self._term.wait(time.time())
            return LimitReached("budget", _spent(said.budget), wait, self.headers)
        if name == "concurrent":
            told = f"This client has {said.concurrent} requests at work, as many as it may have."
            return LimitReached("concurrent", f"{told} Wait for one to end.", 1.0, self.headers)
        limit: Limit = "requests" if name == "requests" else "tokens"
        most = said.requests_per_minute if limit == "requests" else said.tokens_per_minute
        self.headers[f"x-ratelimit-reset-{limit}"] = f"{max(1, ceil(taken.wait))}s"
        told = f"This client may use {most} {limit} a minute, and has."
        wait = min(taken.wait, _MINUTE)
        return LimitReached(limit, f"{told} Send the request again later.", wait, self.headers)


def _told(limit: str, most: int, used: float) -> dict[str, str]:
    return {
        f"x-ratelimit-limit-{limit}": str(most),
        f"x-ratelimit-remaining-{limit}": str(max(0, int(most - used))),
        f"x-ratelimit-reset-{limit}": _RESET,
    }


def _spent(budget: SpendingLimit) -> str:
    period = "in all" if budget.period == "total" else f"a {budget.period}"
    return (
        f"This client's budget is spent: {budget.amount:g} USD {period}. More is a matter of its "
        "`budget` under [clients] in the gateway's config."
    )
