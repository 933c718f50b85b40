"""`Recall`: puts the upstream's thoughts back into a request, and remembers the new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from adapters.protocol import (
    ChatRequest,
    Event,
    Events,
    Finish,
    Noted,
    Opened,
    Planned,
    ReasoningDelta,
)
from adapters.receipts import Note
from middleware.wrappers.base import Wrapper
from middleware.wrappers.recall import fingerprint as said
from middleware.wrappers.recall.memory import remembered
from middleware.wrappers.recall.remembered_history import RememberedHistory
from middleware.wrappers.recall.store import Entry, Store, StoreFailure


@dataclass(frozen=True, slots=True)
class Recall(Wrapper):
    """Gives its inner adapter back what the client does not send."""

    store: Store
    scope: str = ""
    """Keeps apart what must not meet, beyond client and model."""
    thinks: Callable[[ChatRequest], bool] | None = None
    """Says which requests may have to do with thoughts; None: all."""

    def stream(self, request: ChatRequest) -> Events:
        walk = self._walk(request)
        return self._listening(request) if walk is None else self._recalling(walk)

    def _walk(self, request: ChatRequest) -> RememberedHistory | None:
        """Without thoughts there is nothing a client could not say: it goes up untouched."""
        if self.thinks is None or self.thinks(request):
            return RememberedHistory(request, self.store, self._start(request, "asked"))
        return self._unasked(request) if self._surprised(request) else None

    def _unasked(self, request: ChatRequest) -> RememberedHistory:
        """Finds thoughts nobody asked for, and no others: those that were have their own start."""
        return RememberedHistory(request, self.store, self._start(request, "unasked"), by_ids=True)

    def _start(self, request: ChatRequest, kind: str) -> bytes:
        return said.digest(self.scope, request.call.client, request.model, kind)

    def _surprised(self, request: ChatRequest) -> bool:
        """Spares the walk where no answer ever held a thought that nobody asked for."""
        if all(message["role"] != "assistant" for message in request.messages):
            return False
        try:
            return self.store.get(self._start(request, "surprised")) is not None
        except StoreFailure:
            return False

    async def _listening(self, request: ChatRequest) -> Events:
        """Pass everything through, and remember a thought that nobody asked for."""
        heard: list[tuple[Event, ...]] = []
        async with aclosing(self.inner.stream(request)) as events:
            async for batch in events:
                heard.append(batch)
                if type(batch[-1]) is Finish and _thoughtful(heard):
                    surprise = Entry(self._start(request, "surprised"), b"1")
                    yield await self._last(self._unasked(request), heard, surprise)
                else:
                    yield batch

    async def _recalling(self, walk: RememberedHistory) -> Events:
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
        walk = self._walk(request)
        if walk is None:
            return self.inner.plan(request)
        return tuple(
            replace(planned, receipt=walk.receipt() + planned.receipt)
            for planned in self.inner.plan(walk.request())
        )

    async def _last(
        self, walk: RememberedHistory, heard: Sequence[tuple[Event, ...]], *beside: Entry
    ) -> tuple[Event, ...]:
        """Remember before the client can come back with the next turn."""
        batch = heard[-1] if beside else _with_notes(heard[-1], walk)
        failure = await self._remember(walk, heard, beside)
        return batch if failure is None else (*batch[:-1], Noted((failure,)), batch[-1])

    async def _remember(
        self, walk: RememberedHistory, heard: Sequence[tuple[Event, ...]], beside: Sequence[Entry]
    ) -> Note | None:
        memory = remembered(heard, walk.before(), walk.told_apart)
        if memory is None:
            return None
        try:
            await self.store.keep([*walk.entries(memory), *beside], walk.used())
        except StoreFailure as failure:
            return Note("recall_not_kept", "", f"{failure}; later turns go up without this one")
        return None


def _with_notes(batch: tuple[Event, ...], walk: RememberedHistory) -> tuple[Event, ...]:
    opened, receipt = batch[0], walk.receipt()
    if not receipt or type(opened) is not Opened:
        return batch
    return (replace(opened, receipt=receipt + opened.receipt), *batch[1:])


def _thoughtful(heard: Sequence[tuple[Event, ...]]) -> bool:
    finish = heard[-1][-1]
    if isinstance(finish, Finish) and finish.turn is not None:
        return True
    return any(ReasoningDelta in map(type, batch) for batch in heard)
