"""`Recall`: puts the upstream's own turns back into a request, and remembers the new one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from adapters.protocol import (
    Adapter,
    ChatRequest,
    Event,
    Events,
    Finish,
    Note,
    Noted,
    Opened,
    Planned,
    ReasoningDelta,
)
from middleware.recall.memory import remembered
from middleware.recall.store import Entry, Store, StoreFailure
from middleware.recall.walk import Walk

_MOST_SURPRISES = 1024


@dataclass(frozen=True, slots=True)
class Recall:
    """Gives its inner adapter back what the client does not send."""

    inner: Adapter
    store: Store
    scope: str = ""
    """Keeps apart what must not meet, beyond client and model."""
    thinks: Callable[[ChatRequest], bool] | None = None
    """Says which requests may have to do with thoughts; None: all."""

    surprises: dict[tuple[str, str], None] = field(default_factory=dict)
    """Clients and models whose answers held thoughts although none were asked for."""

    def stream(self, request: ChatRequest) -> Events:
        return self._recalling(request) if self._matters(request) else self._listening(request)

    def _matters(self, request: ChatRequest) -> bool:
        """Without thoughts there is nothing a client could not say: it goes up untouched."""
        if self.thinks is None or self.thinks(request):
            return True
        return bool(self.surprises) and (request.call.client, request.model) in self.surprises

    async def _listening(self, request: ChatRequest) -> Events:
        """Pass everything through, and remember a thought that nobody asked for."""
        heard: list[tuple[Event, ...]] = []
        async with aclosing(self.inner.stream(request)) as events:
            async for batch in events:
                heard.append(batch)
                if type(batch[-1]) is Finish and _thoughtful(heard):
                    self._note_surprise(request)
                    yield await self._last(Walk(request, self.store, self.scope), heard)
                else:
                    yield batch

    def _note_surprise(self, request: ChatRequest) -> None:
        self.surprises[request.call.client, request.model] = None
        if len(self.surprises) > _MOST_SURPRISES:
            del self.surprises[next(iter(self.surprises))]

    async def _recalling(self, request: ChatRequest) -> Events:
        walk = Walk(request, self.store, self.scope)
        heard: list[tuple[Event, ...]] = []
        async with aclosing(self.inner.stream(walk.request())) as events:
            async for batch in events:
                heard.append(batch)
                if type(batch[-1]) is Finish:
                    yield await self._last(walk, heard)
                elif type(batch[0]) is Opened:
                    yield _with_notes(batch, walk)
                else:
                    yield batch

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        if not self._matters(request):
            return self.inner.plan(request)
        walk = Walk(request, self.store, self.scope)
        return tuple(
            replace(planned, receipt=walk.receipt() + planned.receipt)
            for planned in self.inner.plan(walk.request())
        )

    async def _last(self, walk: Walk, heard: Sequence[tuple[Event, ...]]) -> tuple[Event, ...]:
        """Remember before the client can come back with the next turn."""
        batch = _with_notes(heard[-1], walk)
        failure = await self._remember(walk, heard)
        return batch if failure is None else (*batch[:-1], Noted((failure,)), batch[-1])

    async def _remember(self, walk: Walk, heard: Sequence[tuple[Event, ...]]) -> Note | None:
        memory = remembered(heard, walk.before())
        if memory is None:
            return None
        entry = Entry(walk.key(memory.message()), memory.dumped())
        try:
            await self.store.keep(entry, walk.used())
        except StoreFailure as failure:
            return Note("recall_not_kept", "", f"{failure}; later turns go up without this one")
        return None


def _with_notes(batch: tuple[Event, ...], walk: Walk) -> tuple[Event, ...]:
    opened, receipt = batch[0], walk.receipt()
    if not receipt or type(opened) is not Opened:
        return batch
    return (replace(opened, receipt=receipt + opened.receipt), *batch[1:])


def _thoughtful(heard: Sequence[tuple[Event, ...]]) -> bool:
    finish = heard[-1][-1]
    if isinstance(finish, Finish) and finish.turn is not None:
        return True
    return any(ReasoningDelta in map(type, batch) for batch in heard)
