"""`Recall`: puts the upstream's thoughts back into a request, and remembers the new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from operator import itemgetter

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
from middleware.wrappers.base import Wrapper, noted, with_notes
from middleware.wrappers.recall import fingerprint
from middleware.wrappers.recall.foreign import ForeignThoughts, foreign_thoughts
from middleware.wrappers.recall.memory import Batches, remembered
from middleware.wrappers.recall.remembered_history import RememberedHistory
from middleware.wrappers.recall.store import Entry, Store, StoreFailure

_role = itemgetter("role")


@dataclass(frozen=True, slots=True)
class Recall(Wrapper):
    """Gives its inner adapter back what the client does not send."""

    store: Store
    scope: str = ""
    """Keeps apart what must not meet, beyond client and model."""
    thinks: Callable[[ChatRequest], bool] | None = None
    """Says which requests may have to do with thoughts; None: all."""
    apart: bool = False
    """Others of its kind stand for the same model: what is not known here is theirs."""

    def stream(self, request: ChatRequest) -> Events:
        if self.store.distant:
            return self._from_afar(request)
        history = self._history(request)
        if history is None:
            return self._listen(self._without_foreign(request) if self.apart else request)
        return self._recall(history)

    async def _from_afar(self, request: ChatRequest) -> Events:
        """Bring near what the request may need, all of it at once."""
        keys: list[bytes] = []
        if any(message["role"] == "assistant" for message in request.messages):
            asked = self.thinks is None or self.thinks(request)
            history = self._of_asked(request) if asked else self._of_unasked(request)
            keys = [*history.keys(), self._start(request, "surprised")]
        near = replace(self, store=await self.store.near(keys))
        async with aclosing(near.stream(request)) as events:
            async for batch in events:
                yield batch

    def _history(self, request: ChatRequest) -> RememberedHistory | None:
        """Without thoughts there is nothing a client could not say: it goes up untouched."""
        if self.thinks is None or self.thinks(request):
            return self._of_asked(request)
        return self._of_unasked(request) if self._has_surprised(request) else None

    def _of_asked(self, request: ChatRequest) -> RememberedHistory:
        return RememberedHistory(request, self.store, self._start(request, "asked"))

    def _of_unasked(self, request: ChatRequest) -> RememberedHistory:
        """Finds thoughts nobody asked for, and no others: those that were have their own start."""
        return RememberedHistory(request, self.store, self._start(request, "unasked"), by_ids=True)

    def _start(self, request: ChatRequest, kind: str) -> bytes:
        return fingerprint.start(self.scope, request.call.owner, request.model, kind)

    def _has_surprised(self, request: ChatRequest) -> bool:
        """Did an answer ever hold a thought that nobody asked for? Else nothing is kept."""
        if "assistant" not in map(_role, request.messages):
            return False
        try:
            return self.store.get(self._start(request, "surprised")) is not None
        except StoreFailure:
            return False

    def _without_foreign(self, request: ChatRequest) -> ChatRequest:
        """It does not think about this one: no thought is of any use to it."""
        return foreign_thoughts(request, self.scope).without(request)

    async def _listen(self, request: ChatRequest) -> Events:
        """Pass everything through, and remember a thought that nobody asked for."""
        batches: list[tuple[Event, ...]] = []
        events = self.inner.stream(request)
        try:
            async for batch in events:
                batches.append(batch)
                if type(batch[-1]) is Finish and _has_thoughts(batches):
                    surprise = Entry(self._start(request, "surprised"), b"1")
                    yield await self._remember_first(self._of_unasked(request), batches, surprise)
                else:
                    yield batch
        finally:
            await events.aclose()

    async def _recall(self, history: RememberedHistory) -> Events:
        batches: list[tuple[Event, ...]] = []
        request, foreign = self._sent(history)
        async with aclosing(self.inner.stream(request)) as events:
            async for batch in events:
                first = batch[0]
                left = foreign.receipt(first.receipt) if type(first) is Opened else ()
                batches.append(with_notes(batch, left))
                if type(batch[-1]) is Finish:
                    yield await self._remember_first(history, batches)
                elif type(first) is Opened:
                    yield with_notes(batches[-1], history.receipt())
                else:
                    yield batch

    def _sent(self, history: RememberedHistory) -> tuple[ChatRequest, ForeignThoughts]:
        """What goes up, and whose thoughts do not."""
        request, own = history.request(), history.restored()
        foreign = foreign_thoughts(request, self.scope, own) if self.apart else ForeignThoughts({})
        return foreign.without(request), foreign

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        history = self._history(request)
        if history is None:
            return self.inner.plan(self._without_foreign(request) if self.apart else request)
        sent, foreign = self._sent(history)
        calls = self.inner.plan(sent)
        if not any("reasoning_content" in message for message in request.messages):
            calls = tuple(map(_without_own_losses, calls))
        left = foreign.receipt(tuple(note for call in calls for note in call.receipt))
        return noted(calls, history.receipt() + left)

    async def _remember_first(
        self, history: RememberedHistory, batches: Batches, *beside: Entry
    ) -> tuple[Event, ...]:
        """Remember before the client can come back with the next turn."""
        batch = batches[-1] if beside else with_notes(batches[-1], history.receipt())
        failure = await self._remember(history, batches, beside)
        return batch if failure is None else (*batch[:-1], Noted((failure,)), batch[-1])

    async def _remember(
        self, history: RememberedHistory, batches: Batches, beside: Sequence[Entry]
    ) -> Note | None:
        memory = remembered(batches, history.before(), history.has_ids)
        if memory is None:
            return None
        try:
            await self.store.keep([*history.entries(memory), *beside], history.used())
        except StoreFailure as failure:
            return Note("recall_not_kept", "", f"{failure}; later turns go up without this one")
        return None


def _without_own_losses(call: Planned) -> Planned:
    """A thought that was put back here, and is not taken, is no loss of the client's."""
    notes = (note for note in call.receipt if not note.field.endswith(".reasoning_content"))
    return replace(call, receipt=tuple(notes))


def _has_thoughts(batches: Batches) -> bool:
    finish = batches[-1][-1]
    if type(finish) is Finish and finish.turn is not None:
        return True
    for batch in batches:  # in C it takes a fifth more
        for event in batch:
            if type(event) is ReasoningDelta:
                return True
    return False
