"""`Strict`: a note that something is lost becomes a refusal."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.protocol import ChatRequest, Events, Planned
from adapters.shared.fields import refuse_losses
from middleware.wrappers.base import Wrapper


@dataclass(frozen=True, slots=True)
class Strict(Wrapper):
    """Refuses a request of which anything would be lost, instead of saying so in the receipt."""

    def stream(self, request: ChatRequest) -> Events:
        self.plan(request)
        return self.inner.stream(request)

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        planned = self.inner.plan(request)
        lost = (
            note
            for call in planned
            for note in call.receipt
            if note.top not in call.configured and note.top not in request.configured
        )
        refuse_losses(tuple(lost))
        return planned
