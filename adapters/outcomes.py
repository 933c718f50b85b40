"""What became of a place, a call or a tool, in the words that clients, log and traces are told."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

Outcome = Literal[
    "ok", "rate_limited", "quota", "refused", "missing", "failed", "overloaded", "unreachable",
    "timeout", "too_long", "client",
]  # fmt: skip
"""What came of a call; `client`: the request itself was refused."""
Passing = Literal[
    "resting", "open", "full", "no_vision", "no_tools", "no_json_schema", "no_context", "lossy",
    "absent",
]  # fmt: skip
"""Why a place was not asked."""


class PassedOver(NamedTuple):
    """A place that was considered and not asked."""

    place: str
    reason: Passing


class ServerCall(NamedTuple):
    """A call of a server tool."""

    tool: str
    """Its id in the config."""
    round: int
    seconds: float
    ok: bool
    chars: int
    """Of its result."""


class RouteSummary(NamedTuple):
    """What clients, log and traces are told of a journey."""

    steps: tuple[str, ...]
    """In order: `sonnet=rate_limited`, `gpt=ok`."""
    answered: str
    """The place the answer is of; empty: nobody has answered."""
    key: str
    """Which of its upstream's keys it came with, where it has several."""


# Nearly all requests are one call, and as many as come in a second are of few models.
@lru_cache(maxsize=256)
def route_of_one(place: str, code: Outcome, key: str, opened: bool) -> RouteSummary:
    """Of a journey that is a single call."""
    answered = opened or code == "ok"
    return RouteSummary((f"{place}={code}",), *((place, key) if answered else ("", "")))
