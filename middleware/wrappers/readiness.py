"""What a wrapper that chooses may ask of an upstream before it asks it a chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from middleware.machine.board import BreakerState


class KeyTurn(NamedTuple):
    """A key of an upstream, as it stands now; an upstream without several has one turn."""

    name: str
    """`claude#2` by its place in the config; the upstream's own name where there is one alone."""
    resting: float = 0.0
    """Seconds until its rest ends."""
    full: bool = False
    """It has as many open calls as it may, by config or by what a 429 taught."""
    open: int = 0


class Readiness(Protocol):
    """One for each upstream; `model` is the upstream's own name for one of its models."""

    def breaker(self, model: str) -> BreakerState: ...

    async def turns(self, model: str, conversation: str) -> Sequence[KeyTurn]:
        """Its keys, in the order in which this conversation should ask them: those that are well,
        then those that are full, then those that rest, the first end first.
        """

    async def open_calls(self) -> float:
        """How many calls are open there now, of all gateways."""
