"""`Queue`: a call holds a slot of its key until its end; without a free one it waits its turn."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
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
        key, counted = await self._take(request.call, request.model)
        try:
            if self.ring.secrets and request.call.chosen != key:
                request = replace(request, call=replace(request.call, chosen=key))
            async with aclosing(self.inner.stream(request)) as batches:
                async for batch in batches:
                    yield batch
        finally:
            await self._give(key, counted)

    async def embed(self, request: EmbeddingRequest) -> Json:
        key, counted = await self._take(request.call, request.model)
        try:
            call = replace(request.call, chosen=key)
            return await self.inner.embed(replace(request, call=call))
        finally:
            await self._give(key, counted)

    async def _take(self, call: RequestContext, model: str) -> tuple[str, str]:
        """Take a slot; return of which key it is, and by what the open call is counted."""
        ring = self.ring
        key = await ring.key_of(call, model)
        await self._wait(key, call, model)
        try:
            return key, await ring.begin(key, call) if ring.counting else ""
        except asyncio.CancelledError:
            ring.board.give(key)
            raise

    async def _give(self, key: str, counted: str) -> None:
        self.ring.board.give(key)
        if counted:
            await self.ring.end(key, counted)

    async def _wait(self, key: str, call: RequestContext, model: str) -> None:
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
