"""What one request used and what that costs, and what it takes of its client's limits for it."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from adapters.protocol import UpstreamCall, Usage
from adapters.receipts import Note, Receipt
from middleware.accounts.lengths import AnswerLengths
from middleware.accounts.limits import Allowance, LimitReached
from middleware.accounts.prices import Prices
from middleware.server.visits import Visit
from middleware.state.store import Waiting

_LETTERS = 4
"""Of a token, about."""
_DIGITS = 12
_LONGEST = 1 << 24
"""Tokens of an answer that are believed: beside a number without end all others would be lost."""
_UNPRICED = Note(
    "price_unknown",
    "model",
    "nobody knows what this model costs: counted as 0. Set its `price` under [models].",
)
_LEFT = Note("usage_estimated", "usage", "a call was left before its upstream said what it used")
_UNSAID = Note("usage_estimated", "usage", "the upstream counted no tokens: its cost is estimated")


class Bill:
    """Begun when a request is let in; closed once, when nothing more is used."""

    __slots__ = (
        *("_allowance", "_answer", "_closed", "_lengths", "_prices"),
        *("limited", "size", "visit", "watched"),
    )

    def __init__(
        self,
        visit: Visit,
        prices: Prices,
        lengths: AnswerLengths,
        allowance: Allowance | None = None,
    ) -> None:
        self.visit = visit
        self._prices = prices
        self._lengths = lengths
        self._allowance = allowance
        self.limited = allowance is not None
        """Its client has limits: only then there is something to take, and to give back."""
        self.watched = prices.watched
        """Somebody keeps accounts of what requests cost."""
        self.size = 0
        """Bytes of the prompt."""
        self._answer = 0
        self._closed = False

    @property
    def headers(self) -> Sequence[tuple[bytes, bytes]]:
        """The limits of its client."""
        return self._allowance.headers if self._allowance is not None else ()

    def enter(self) -> Waiting:
        """Take a place among its client's requests, or raise `LimitReached`; once."""
        visit = self.visit
        if visit.counted:
            return None
        if self._allowance is not None:
            waiting = self._allowance.enter()
            if waiting is not None:
                return self._enter(waiting)
        visit.counted = True
        return None

    async def _enter(self, waiting: Awaitable[None]) -> None:
        await waiting
        self.visit.counted = True

    def reserve(self, answer: int | None) -> Waiting:
        """Take what it is likely to use of its client's limits; `answer` is its own limit."""
        assert self._allowance is not None
        visit = self.visit
        if answer is None:
            answer = self._lengths.of(visit.client, visit.model)
        self._answer = answer if answer < _LONGEST else _LONGEST
        visit.journey.before_next_ask = self._reserve_more
        tokens, cost = self._likely(self.size // _LETTERS)
        return self._allowance.reserve(tokens, cost)

    def _reserve_more(self, size: int) -> Waiting:
        """Take the same for another ask with so many bytes more, even beyond the limits: the
        client cannot do without what it was let in for.
        """
        assert self._allowance is not None
        likely = self._likely(self.size // _LETTERS + size // _LETTERS)
        return self._allowance.reserve(*likely, beyond=True)

    def _likely(self, prompt: int) -> tuple[int, float]:
        """Tokens and USD of one ask."""
        answer, price = self._answer, self._prices.expected(self.visit.model)
        return prompt + answer, prompt * price.input + answer * price.output

    def forgive(self) -> None:
        """Count nothing of it: a recording answers."""
        self.visit.counted = False

    def missing(self) -> Receipt:
        """What the accounts lack of the call that answers now."""
        if not self.watched:
            return ()
        calls = self.visit.journey.steps
        last = calls[-1] if calls else None
        unpriced = type(last) is UpstreamCall and self._prices.of(last.place) is None
        return (_UNPRICED,) if unpriced else ()

    def close(self) -> None:
        """Say in the visit what was used, and what that costs."""
        if self._closed:
            return
        self._closed = True
        visit = self.visit
        if visit.played:
            visit.counted = False
            return
        if isinstance(visit.error, LimitReached):
            visit.limit, visit.counted = visit.error.limit, False
            return
        self._add_up()
        if self._allowance is not None and visit.spent and visit.error is None and not visit.gone:
            self._lengths.learn(visit.client, visit.model, visit.spent.completion)

    def _add_up(self) -> None:
        visit = self.visit
        if visit.usage is not None:  # vectors have no finish
            calls = visit.journey.calls()
            self._add(calls[-1].place if calls else visit.model, visit.usage)
            return
        for step in visit.journey.steps:
            if type(step) is UpstreamCall:
                said = step.finish.usage if step.finish is not None else None
                if usage := said or self._guess(step):
                    self._add(step.place, usage)

    def _add(self, place: str, used: Usage) -> None:
        visit, price = self.visit, self._prices.of(place)
        visit.spent = used if visit.spent is None else _sum(visit.spent, used)
        if price is not None:
            cost = price.cost(used)
            visit.cost = cost if visit.cost is None else round(visit.cost + cost, _DIGITS)

    def _guess(self, call: UpstreamCall) -> Usage | None:
        """Of a call whose usage nobody said; None: it failed, and costs nothing."""
        if call.finish is None:
            # A pipeline leaves its reasoner as soon as that has thought.
            left = self.visit.gone or (self.visit.error is None and call.outcome == "ok")
            if not left or call.error is not None:
                return None
        return self._estimate(call)

    def _estimate(self, call: UpstreamCall) -> Usage:
        """What went there, and what came."""
        guess = Usage(self.size // _LETTERS, call.letters // _LETTERS)
        price = self._prices.of(call.place)
        if call.finish is None and (self.visit.gone or call.opened is not None):
            self.visit.receipt += (_LEFT,)
        elif price is not None and price.cost(guess):
            self.visit.receipt += (_UNSAID,)
        return guess

    def settle(self) -> Waiting:
        """Give back what was not used of what was taken of its client's limits."""
        assert self._allowance is not None
        visit = self.visit
        visit.journey.before_next_ask = None  # the visit must not hold what holds it
        spent = visit.spent.prompt + visit.spent.completion if visit.spent else 0
        # What was played or refused is no request.
        none = visit.played or bool(visit.limit)
        return self._allowance.settle(spent, visit.cost or 0.0, none)


def _sum(one: Usage, other: Usage) -> Usage:
    both = zip(_figures(one), _figures(other), strict=True)
    prompt, completion, cached, written, thought = map(sum, both)
    return Usage(prompt, completion, cached, written, thought)


def _figures(usage: Usage) -> tuple[int, ...]:
    inner = (usage.cached or 0, usage.cache_write or 0, usage.reasoning or 0)
    return (usage.prompt, usage.completion, *inner)
