"""`Wrapper`: an adapter around an adapter, which hands on what it does not change."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.protocol import Adapter, ChatRequest, Events, Planned


@dataclass(frozen=True, slots=True)
class Wrapper(Adapter):
    inner: Adapter

    def stream(self, request: ChatRequest) -> Events:
        return self.inner.stream(request)

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        return self.inner.plan(request)
