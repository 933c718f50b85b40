"""`Carriers`: nothing private goes past it but what the leaf within can read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from adapters.protocol import ChatRequest, Events, Planned
from adapters.receipts import Receipt
from adapters.shared.carriers import fit, shortened
from middleware.wrappers.base import Wrapper, noted, noting


@dataclass(frozen=True, slots=True)
class Carriers(Wrapper):
    """Takes out of a request what doors put there for other leaves, and names what that loses."""

    language: str = ""
    """That of the leaf; empty: it takes no client's own words."""
    upstream: str = ""
    """Whose thoughts may stay; empty: everybody's."""
    longest: Callable[[str], int | None] | None = None
    """How long a model's answers can be, as far as that is known."""

    def stream(self, request: ChatRequest) -> Events:
        fitting, lost = self._fit(request)
        events = self.inner.stream(fitting)
        return noting(events, lost) if lost else events

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        fitting, lost = self._fit(request)
        planned = self.inner.plan(fitting)
        return noted(planned, lost) if lost else planned

    def _fit(self, request: ChatRequest) -> tuple[ChatRequest, Receipt]:
        if request.native is None or self.longest is None:
            return fit(request, self.language, self.upstream)
        short, told = shortened(request, self.longest(request.model))
        fitting, lost = fit(short, self.language, self.upstream)
        return fitting, told + lost
