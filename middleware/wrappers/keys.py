"""`Rotation`: puts on a call which of the upstream's keys opens it."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, replace

from adapters.protocol import ChatRequest, Events, Json, RequestContext
from adapters.shared.embeddings import EmbeddingRequest
from middleware.wrappers.base import Wrapper
from middleware.wrappers.calls import Guarded, call_at_work
from middleware.wrappers.key_ring import KeyRing


@dataclass(frozen=True, slots=True)
class Rotation(Wrapper):
    inner: Guarded
    ring: KeyRing

    async def stream(self, request: ChatRequest) -> Events:
        call = await self._opened(request.call, request.model)
        async with aclosing(self.inner.stream(replace(request, call=call))) as batches:
            async for batch in batches:
                yield batch

    async def embed(self, request: EmbeddingRequest) -> Json:
        call = await self._opened(request.call, request.model)
        return await self.inner.embed(replace(request, call=call))

    async def _opened(self, call: RequestContext, model: str) -> RequestContext:
        name = await self.ring.key_of(call, model)
        if record := call_at_work(call):
            record.key = name
        return replace(call, chosen=name, key=self.ring.secrets[name])
