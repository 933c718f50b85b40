"""What one request used and what that costs."""

from __future__ import annotations

from collections.abc import Awaitable

from adapters.protocol import UpstreamCall, Usage
from adapters.receipts import Note, Receipt
from middleware.accounts.allowance import LETTERS, Allowance
from middleware.accounts.limits import LimitReached
from middleware.accounts.prices import Prices
from middleware.server.visits import Visit
from middleware.state.store import Waiting

_DIGITS = 12
_UNPRICED = Note(
    "price_unknown",
    "model",
    "nobody knows what this model costs: counted as 0. Set its `price` under [models].",
)
_LEFT = Note("usage_estimated", "usage", "a call was left before its upstream said what it used")
_UNSAID = Note("usage_estimated", "usage", "the upstream counted no tokens: its cost is estimated")


class Bill:
    """Begun when a request is let in; closed once, when nothing more is used."""

    __slots__ = ("_closed", "_prices", "allowance", "size", "visit", "watched")

    def __init__(self, visit: Visit, prices: Prices, allowance: Allowance | None = None) -> None:
        self.visit = visit
        self._prices = prices
        self.allowance = allowance
        """None: its client has no limits, so there is nothing to take, and to give back."""
        self.watched = prices.watched
        """Somebody keeps accounts of what requests cost."""
        self.size = 0
        """Bytes of the prompt."""
        self._closed = False

    def enter(self) -> Waiting:
        """Take a place among its client's requests, or raise `LimitReached`; once."""
        visit = self.visit
        if visit.counted:
            return None
        if self.allowance is not None and (waiting := self.allowance.enter()) is not None:
            return self._enter(waiting)
        visit.counted = True
        return None

    async def _enter(self, waiting: Awaitable[None]) -> None:
        await waiting
        self.visit.counted = True

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
        guess = Usage(self.size // LETTERS, call.letters // LETTERS)
        price = self._prices.of(call.place)
        if call.finish is None and (self.visit.gone or call.opened is not None):
            self.visit.receipt += (_LEFT,)
        elif price is not None and price.cost(guess):
            self.visit.receipt += (_UNSAID,)
        return guess


def _sum(one: Usage, other: Usage) -> Usage:
    both = zip(_figures(one), _figures(other), strict=True)
    prompt, completion, cached, written, thought = map(sum, both)
    return Usage(prompt, completion, cached, written, thought)


def _figures(usage: Usage) -> tuple[int, ...]:
    inner = (usage.cached or 0, usage.cache_write or 0, usage.reasoning or 0)
    return (usage.prompt, usage.completion, *inner)
