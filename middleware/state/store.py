"""`State`: counters with limits, and marks that expire. One interface, three homes."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from adapters.protocol import value_class

Home = Literal["memory", "file", "redis"]


@value_class
class CounterLimit:
    """Of which counter requests take, and how far."""

    counter: str
    """`requests:alpha`, `open:claude#2`; never a key, never a client's text."""
    limit: float
    """Let in while the sum is below it; `inf` only counts."""
    seconds: float
    """How long an amount counts once it is settled, and at most where it never is."""
    sliding: bool = True
    """Each amount ends by itself; else they are one sum, which ends so long after its last use
    (of a calendar's period, which is in the counter's name).
    """


Wanted = tuple[CounterLimit, float]
"""Of which counter, and how much."""


class Hold(NamedTuple):
    """What one request takes of a counter, until it is settled; as `CounterLimit` says."""

    counter: str
    amount: float
    limit: float
    seconds: float
    sliding: bool = True

    @classmethod
    def of(cls, limit: CounterLimit, amount: float) -> Hold:
        return cls(limit.counter, amount, limit.limit, limit.seconds, limit.sliding)

    def wanted(self) -> Wanted:
        return CounterLimit(self.counter, self.limit, self.seconds, self.sliding), self.amount


@value_class
class Taken:
    """What came of asking for holds: all of them, or none."""

    sums: Mapping[str, float]
    """Of every counter that was asked, with what was taken."""
    refused: str = ""
    """The counter that was full; empty: all were taken."""
    wait: float = 0.0
    """Seconds until it may have room, if nothing else is settled before."""


class Mark(NamedTuple):
    """Something remembered for a while."""

    text: str
    until: float
    """Seconds since 1970."""


Waiting = Awaitable[None] | None
"""What is to be waited for; None: it is done."""


class Claims(Protocol):
    """What one request has of counters. Where those are here, nothing has to be waited for."""

    @property
    def sums(self) -> Mapping[str, float]:
        """Of every counter it has asked, as it was then."""

    def take(self, wanted: Sequence[Wanted]) -> Taken | Awaitable[Taken | None] | None:
        """Take all that is wanted; or none of it, and say which was full."""

    def settle(self, amounts: Mapping[str, float]) -> Waiting:
        """Put what was really used in place of what was taken; 0 gives back."""


class State(Protocol):
    """Never raises, never blocks for long: what cannot be shared is counted by this process.

    Where the home is this process the methods do not suspend.
    """

    home: Home

    @property
    def well(self) -> bool:
        """Whether what is counted is shared now, as the config says."""

    @property
    def marked(self) -> bool:
        """Whether there may be a mark to read; False saves to look, and to make up its name."""

    def claims(self, request: str) -> Claims:
        """What a request will have, to be kept by who counts it."""

    async def take(self, request: str, holds: Sequence[Hold]) -> Taken:
        """Take all holds for a request, or none of them: it is known by its name."""

    async def settle(self, request: str, amounts: Mapping[str, float]) -> None:
        """Put what a request really used in place of its holds; 0 gives back."""

    async def sums(self, counters: Sequence[str]) -> Sequence[float]: ...

    async def read(self, names: Sequence[str]) -> Sequence[Mark | None]: ...

    async def mark(self, name: str, text: str, seconds: float, later: bool = False) -> None:
        """Remember; with `later` a mark that ends later than this one stays."""

    async def close(self) -> None:
        """Write what is only in memory, and let go."""
