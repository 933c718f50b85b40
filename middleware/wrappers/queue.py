"""`Queue`: a call holds a slot of its key until its end; without a free one it waits its turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

from adapters.protocol import ChatRequest, Events, Json, RequestContext
from adapters.shared.embeddings import EmbeddingRequest
from middleware.wrappers.base import Wrapper
from middleware.wrappers.calls import Guarded, UpstreamFull, WaitedOut, call_at_work
from middleware.wrappers.key_ring import KeyRing


@dataclass(frozen=True, slots=True)
class Queue(Wrapper):
    inner: Guarded
    ring: KeyRing

    async def stream(self, request: ChatRequest) -> Events:
        async with (
            self._slot(request.call, request.model) as call,
            aclosing(self.inner.stream(replace(request, call=call))) as batches,
        ):
            async for batch in batches:
                yield batch

    async def embed(self, request: EmbeddingRequest) -> Json:
        async with self._slot(request.call, request.model) as call:
            return await self.inner.embed(replace(request, call=call))

    @asynccontextmanager
    async def _slot(self, call: RequestContext, model: str) -> AsyncIterator[RequestContext]:
        """Hold a slot; the call goes with the key it is of."""
        ring = self.ring
        key = await ring.key_of(call, model)
        await self._take(key, call, model)
        counted = ""
        try:
            if ring.counting:
                counted = await ring.begin(call, key)
            yield replace(call, chosen=key)
        finally:
            ring.board.give(key)
            if counted:
                await ring.end(counted, key)

    async def _take(self, key: str, call: RequestContext, model: str) -> None:
        ring, record = self.ring, call_at_work(call)
        began = asyncio.get_running_loop().time()
        limit, patience = await ring.limit_of(key, model), ring.patience
        left = patience if call.deadline is None else call.deadline - began
        try:
            taken = await ring.board.take(key, limit, min(patience, left))
        except asyncio.CancelledError:
            if record is not None and call.journey is not None:
                call.journey.steps.pop()  # it never got to a call
            raise
        now = asyncio.get_running_loop().time()
        if call.journey is not None:
            call.journey.queued += now - began
        if taken:
            if record is not None:
                record.began = now
        elif left < patience:
            raise WaitedOut(f"Upstream '{ring.upstream}' had no free slot within the deadline.")
        else:
            raise UpstreamFull(
                f"Upstream '{ring.upstream}' has as many open calls as it may, and none ended in "
                f"{patience:g} seconds. Send the request again.",
                retry_after="1",
            )
