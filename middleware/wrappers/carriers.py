"""`Carriers`: nothing private goes past it but what the leaf within can read."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.protocol import ChatRequest, Events, Planned
from adapters.shared.carriers import fit
from middleware.wrappers.base import Wrapper, noted, noting


@dataclass(frozen=True, slots=True)
class Carriers(Wrapper):
    """Takes out of a request what doors put there for other leaves, and names what that loses."""

    language: str = ""
    """That of the leaf; empty: it takes no client's own words."""
    upstream: str = ""
    """Whose thoughts may stay; empty: everybody's."""

    def stream(self, request: ChatRequest) -> Events:
        fitting, lost = fit(request, self.language, self.upstream)
        events = self.inner.stream(fitting)
        return noting(events, lost) if lost else events

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        fitting, lost = fit(request, self.language, self.upstream)
        planned = self.inner.plan(fitting)
        return noted(planned, lost) if lost else planned
