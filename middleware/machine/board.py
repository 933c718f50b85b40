"""`Board`: who is well and who is full, as far as this machine knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

BreakerState = Literal["closed", "half_open", "open"]
Entry = Literal["refused", "call", "probe"]
"""A breaker's answer; a probe is the one call that it lets through to see who is well again."""


class Board(Protocol):
    """Names are of an upstream and its model (`up/gpt-5`) for breakers, of an upstream and its key
    (`up#2`) for slots.
    """

    def breaker(self, name: str) -> BreakerState:
        """What is known of it here and now; asks nobody."""

    def reopens(self, name: str) -> float:
        """Seconds until an open breaker lets one call through."""

    def breakers(self) -> Mapping[str, BreakerState]:
        """Those that have ever been open."""

    async def enter(self, name: str) -> Entry:
        """Whether a call may be made now; of a breaker that is half open one alone may."""

    def leave(self, name: str, well: bool | None, probe: bool = False) -> None:
        """Say what came of a call that entered; None: nothing that tells of its health."""

    def free(self, slot: str, limit: int) -> int:
        """How many slots are free, as far as is known here."""

    def waiting(self, slot: str) -> int:
        """How many wait for it."""

    async def take(self, slot: str, limit: int, seconds: float) -> bool:
        """Take a slot, waiting in the order of asking; False: there was none in time."""

    def give(self, slot: str) -> None:
        """Free a slot that was taken."""
