"""`Breaker`: around every leaf, it records each call; who fails too often is left alone a while.

It is the one layer that every call passes, so it also tells the ring of its key what came of it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from adapters.errors import Busy, GatewayError, UpstreamError
from adapters.outcomes import PassedOver
from adapters.protocol import (
    ChatRequest,
    Event,
    Events,
    Finish,
    Journey,
    Json,
    Opened,
    ReasoningDelta,
    RequestContext,
    TextDelta,
    ToolCallDelta,
    UpstreamCall,
)
from adapters.shared.embeddings import EmbeddingRequest
from middleware.machine.board import Entry
from middleware.wrappers.base import Wrapper
from middleware.wrappers.calls import ILL, Guarded, NotAsked, UpstreamOpen, outcome_of
from middleware.wrappers.key_ring import KeyRing

_TEXT: Mapping[type, Callable[[Event], str]] = {
    TextDelta: attrgetter("text"),
    ReasoningDelta: attrgetter("text"),
    ToolCallDelta: attrgetter("arguments"),
}
"""What an event says of an answer's length."""


@dataclass(slots=True)
class _Call:
    """A call that entered."""

    record: UpstreamCall
    journey: Journey | None
    name: str
    """What the board knows its upstream and model by."""
    now: Callable[[], float]
    """The event loop's time."""
    entry: Entry = "call"


@dataclass(frozen=True, slots=True)
class Breaker(Wrapper):
    inner: Guarded
    ring: KeyRing
    place: str
    """Public name of its model, perhaps with a `*`."""
    model: str
    """The upstream's name of it, with a `*` where it has what the public name has there."""

    async def stream(self, request: ChatRequest) -> Events:
        call = self._begun(request.call, request.model)
        if call.entry != "call":
            await self._ask_leave(call)
        record = call.record
        try:
            batches = self.inner.stream(request)
            try:  # as `aclosing` does, which costs as much as a batch
                async for batch in batches:
                    if record.first_event is None:
                        self._opened(call, batch)
                    last = batch[-1]
                    # One piece alone is nearly always what comes.
                    if type(last) is TextDelta and len(batch) == 1:
                        record.letters += len(last.text)
                    elif type(last) is ToolCallDelta and len(batch) == 1:
                        record.letters += len(last.arguments)
                    else:
                        _note(record, batch)
                    yield batch
            finally:
                await batches.aclose()
        except GatewayError as error:
            await self._failed(call, error)
            raise
        finally:
            self._ended(call)

    async def embed(self, request: EmbeddingRequest) -> Json:
        call = self._begun(request.call, request.model)
        if call.entry != "call":
            await self._ask_leave(call)
        try:
            answer = await self.inner.embed(request)
            call.record.outcome = "ok"
        except GatewayError as error:
            await self._failed(call, error)
            raise
        finally:
            self._ended(call)
        return answer

    def _begun(self, asked: RequestContext, model: str) -> _Call:
        """Enter where nothing is known against it; else leave must be asked for."""
        ring, now = self.ring, asked.now or asyncio.get_running_loop().time
        place = self._place(model) if "*" in self.place else self.place
        record = UpstreamCall(place, ring.upstream, model, now())
        call = _Call(record, asked.journey, f"{ring.upstream}/{model}", now)
        if ring.board.breaker(call.name) != "closed":
            call.entry = "refused"
        elif asked.journey is not None:
            asked.journey.steps.append(record)
        return call

    async def _ask_leave(self, call: _Call) -> None:
        call.entry = await self.ring.board.enter(call.name)
        if call.entry == "refused":
            raise self._refusal(call)
        if call.journey is not None:
            call.journey.steps.append(call.record)

    def _refusal(self, call: _Call) -> NotAsked:
        record = call.record
        if call.journey is not None:
            call.journey.steps.append(PassedOver(record.place, "open"))
        wait = max(1, math.ceil(self.ring.board.reopens(call.name)))
        return UpstreamOpen(
            f"Upstream '{record.upstream}' failed too often with model '{record.model[:200]}': it "
            f"is not asked for {wait} more seconds.",
            retry_after=str(wait),
        )

    def _opened(self, call: _Call, batch: tuple[Event, ...]) -> None:
        record, first = call.record, batch[0]
        record.first_event, record.outcome = call.now(), "ok"
        if type(first) is Opened:
            record.opened = first
        if call.entry == "probe":  # who waited for it need not wait for its end
            self.ring.board.leave(call.name, True, True)
            call.entry = "call"

    async def _failed(self, call: _Call, error: GatewayError) -> None:
        record = call.record
        record.error = error
        if isinstance(error, NotAsked) or not isinstance(error, UpstreamError | Busy):
            self._not_made(call, error)
            return
        record.outcome = outcome_of(error)
        await self.ring.failed(record.key or record.upstream, record.model, record.outcome, error)

    def _not_made(self, call: _Call, error: GatewayError) -> None:
        """The request did not get as far as the upstream."""
        steps = call.journey.steps if call.journey else []
        if steps and steps[-1] is call.record:
            steps.pop()
            if isinstance(error, NotAsked):
                steps.append(PassedOver(call.record.place, error.reason))

    def _ended(self, call: _Call) -> None:
        record = call.record
        record.ended = call.now()
        outcome = record.outcome
        well = None if outcome is None else outcome not in ILL
        self.ring.board.leave(call.name, well, call.entry == "probe")

    def _place(self, model: str) -> str:
        if "*" not in self.model:
            return self.place
        before, _, after = self.model.partition("*")
        return self.place.replace("*", model[len(before) : len(model) - len(after)])


def _note(record: UpstreamCall, batch: tuple[Event, ...]) -> None:
    last = batch[-1]
    if type(last) is Finish:
        record.finish = last
    if record.finish is None or record.finish.usage is None:
        record.letters += sum([len(_TEXT[type(one)](one)) for one in batch if type(one) in _TEXT])
