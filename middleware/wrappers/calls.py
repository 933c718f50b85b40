"""What came of a call upstream, as routes, log, metrics and traces say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from adapters.errors import Busy, GatewayError, RateLimited, Refused
from adapters.outcomes import Outcome, Passing
from adapters.protocol import Adapter, Json, RequestContext, UpstreamCall
from adapters.shared.embeddings import EmbeddingRequest

_BY_CODE: Mapping[str, Outcome] = {
    "insufficient_quota": "quota",
    "upstream_billing": "quota",
    "upstream_auth": "refused",
    "model_not_found": "missing",
    "context_length_exceeded": "too_long",
    "request_too_large": "too_long",
    "upstream_timeout": "timeout",
    "upstream_unreachable": "unreachable",
    "overloaded": "overloaded",
}
ILL: frozenset[Outcome] = frozenset({"failed", "overloaded", "unreachable", "timeout"})
"""What tells of an upstream that is not well; that it refuses a request or a key does not."""


def outcome_of(error: GatewayError) -> Outcome:
    if found := _BY_CODE.get(error.code or ""):
        return found
    if isinstance(error, RateLimited):
        return "rate_limited"
    return "client" if isinstance(error, Refused) else "failed"


class NotAsked(Busy):
    """A place that was not asked; in the journey it stands as passed over."""

    again = "elsewhere"
    reason: ClassVar[Passing]


class UpstreamOpen(NotAsked):
    code, reason = "upstream_unavailable", "open"


class UpstreamFull(NotAsked):
    reason = "full"


class WaitedOut(UpstreamFull):
    """The request's own deadline came first."""

    status, code = 504, "upstream_timeout"


class Guarded(Adapter, Protocol):
    """What may be asked of a leaf through its guards."""

    __slots__ = ()

    async def embed(self, request: EmbeddingRequest) -> Json: ...


def call_at_work(call: RequestContext) -> UpstreamCall | None:
    """The record of the call that is being made: the last, as one comes after the other."""
    steps = call.journey.steps if call.journey else ()
    last = steps[-1] if steps else None
    return last if type(last) is UpstreamCall and last.ended is None else None
