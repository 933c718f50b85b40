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
        try:
            key = await self._turn(call, model)
            try:
                return key, await self.ring.begin(key, call) if self.ring.counting else ""
            except asyncio.CancelledError:
                self.ring.board.give(key)
                raise
        except asyncio.CancelledError:
            if call.journey is not None and call_at_work(call):
                call.journey.steps.pop()  # it never got to a call
            raise

    async def _give(self, key: str, counted: str) -> None:
        self.ring.board.give(key)
        if counted:
            await self.ring.end(key, counted)

    async def _turn(self, call: RequestContext, model: str) -> str:
        """Wait for a slot of the call's key; of another if that was limited meanwhile."""
        ring = self.ring
        began = asyncio.get_running_loop().time()
        key = await ring.key_of(call, model)
        waited = await self._wait(key, call, model)
        if waited and ring.secrets and not await self._kept(key, model):
            key = (await ring.turns(model, call.id))[0].name
            await self._wait(key, call, model)
        now = asyncio.get_running_loop().time()
        if call.journey is not None:
            call.journey.queued += now - began
        if record := call_at_work(call):
            record.began = now
        return key

    async def _kept(self, key: str, model: str) -> bool:
        """Keep the slot of a key that is well; who leaves meanwhile keeps none."""
        rests = True
        try:
            rests = await self.ring.rests(key, model)
        finally:
            if rests:
                self.ring.board.give(key)
        return not rests

    async def _wait(self, key: str, call: RequestContext, model: str) -> bool:
        """Take a slot; return whether others had it before."""
        board, patience = self.ring.board, self.ring.patience
        limit = await self.ring.limit_of(key, model)
        if await board.take(key, limit, 0):
            return False
        began = asyncio.get_running_loop().time()
        left = patience if call.deadline is None else call.deadline - began
        if await board.take(key, limit, min(patience, left)):
            return True
        if call.journey is not None:
            call.journey.queued += asyncio.get_running_loop().time() - began
        raise self._full(left < patience)

    def _full(self, late: bool) -> UpstreamFull:
        upstream = self.ring.upstream
        if late:
            return WaitedOut(f"Upstream '{upstream}' had no free slot within the deadline.")
        return UpstreamFull(
            f"Upstream '{upstream}' has as many open calls as it may, and none ended in "
            f"{self.ring.patience:g} seconds. Send the request again.",
            retry_after="1",
        )
