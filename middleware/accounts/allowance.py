"""What one request takes of its client's limits: all of it is given back or settled."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from dataclasses import replace
from math import ceil, inf

from middleware.accounts.budgets import Term
from middleware.accounts.lengths import AnswerLengths
from middleware.accounts.limits import MINUTE, ClientLimits, Limit, LimitReached
from middleware.accounts.prices import Prices
from middleware.config import SpendingLimit
from middleware.server.visits import Visit
from middleware.state.store import Claims, Taken, Waiting, Wanted

LETTERS = 4
"""Of a token, about."""
_LONGEST = 1 << 24
"""Tokens of an answer that are believed: beside a number without end all others would be lost."""


class Allowance:
    """Takes a place for a request as it comes, what it is likely to use once it is read, and says
    at its end what it used.
    """

    __slots__ = (
        *("_answer", "_claims", "_full", "_lengths", "_limits", "_prices", "_prompt", "_reset"),
        *("_term", "visit"),
    )

    def __init__(
        self,
        visit: Visit,
        limits: ClientLimits,
        claims: Claims,
        prices: Prices,
        lengths: AnswerLengths,
    ) -> None:
        self.visit = visit
        self._limits = limits
        self._claims = claims
        self._prices = prices
        self._lengths = lengths
        self._term: Term | None = None
        self._full, self._reset = "", b""
        """The minute's limit that refused it, and when it lets in again."""

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """`x-ratelimit-*` of its limits."""
        told: list[tuple[bytes, bytes]] = []
        sums, full = self._claims.sums, self._full
        for counter, most, limit, remaining, reset in self._limits.minutes:
            if counter in sums:
                left = most - sums[counter]
                whole = reset if counter != full else (reset[0], self._reset)
                told += limit, (remaining, b"%d" % left if left > 0 else b"0"), whole
        return told

    def enter(self) -> Waiting:
        """Take a place among its requests, or raise `LimitReached`: before its body is read."""
        entering = self._limits.entering
        taken = self._claims.take(entering) if entering else None
        return None if taken is None else self._heard(taken)

    def reserve(self, size: int, answer: int | None) -> Waiting:
        """Take what it is likely to use, or raise `LimitReached`, by the bytes of its body and its
        own limit for the answer.
        """
        visit = self.visit
        if answer is None:
            answer = self._lengths.of(visit.client, visit.model)
        self._answer = answer if answer < _LONGEST else _LONGEST
        self._prompt = prompt = size // LETTERS
        visit.journey.before_next_ask = self._reserve_more
        wanted = self._wanted(prompt)
        taken = self._claims.take(wanted) if wanted else None
        return None if taken is None else self._heard(taken)

    def _reserve_more(self, size: int) -> Waiting:
        """Take the same for another ask with so many bytes more, even beyond the limits: the
        client cannot do without what it was let in for.
        """
        wanted = self._wanted(self._prompt + size // LETTERS)
        beyond = [(replace(limit, limit=inf), amount) for limit, amount in wanted]
        taken = self._claims.take(beyond) if beyond else None
        return None if taken is None else self._heard(taken)

    def _wanted(self, prompt: int) -> list[Wanted]:
        """Tokens and USD of one ask."""
        limits, answer = self._limits, self._answer
        wanted: list[Wanted] = [(limits.tokens, prompt + answer)] if limits.tokens.limit else []
        if limits.terms is not None:
            if self._term is None:  # all of a request is of the term it began in
                self._term = limits.terms.at(time.time())
            price = self._prices.expected(self.visit.model)
            wanted.append((self._term.limit, prompt * price.input + answer * price.output))
        return wanted

    def _heard(self, taken: Taken | Awaitable[Taken | None]) -> Awaitable[None]:
        """What is to be waited for; raise `LimitReached` where it is known to be refused."""
        if isinstance(taken, Taken):
            raise self._refusal(taken)
        return self._hear(taken)

    async def _hear(self, taken: Awaitable[Taken | None]) -> None:
        if refused := await taken:
            raise self._refusal(refused)

    def settle(self) -> Waiting:
        """Give back what was not used of what was taken, once the visit says what was."""
        visit, limits, tokens = self.visit, self._limits, 0.0
        visit.journey.before_next_ask = None  # the visit must not hold what holds it
        if (spent := visit.spent) is not None:
            tokens = float(spent.prompt + spent.completion)
            if visit.error is None and not visit.gone:
                self._lengths.learn(visit.client, visit.model, spent.completion)
        amounts = {limits.tokens.counter: tokens}
        if limits.concurrent.limit:
            amounts[limits.concurrent.counter] = 0.0
        if self._term is not None:
            amounts[self._term.counter] = visit.cost or 0.0
        if not visit.counted and (visit.played or visit.limit):  # that is no request
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
        wait = min(taken.wait, MINUTE)
        return LimitReached(limit, f"{told} Send the request again later.", wait)


def _spent(budget: SpendingLimit) -> str:
    period = "in all" if budget.period == "total" else f"a {budget.period}"
    return (
        f"This client's budget is spent: {budget.amount:g} USD {period}. More is a matter of its "
        "`budget` under [clients] in the gateway's config."
    )
