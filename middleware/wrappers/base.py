"""`Wrapper`: an adapter around an adapter, which hands on what it does not change."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import chain

from adapters.protocol import Adapter, ChatRequest, Event, Events, Opened, Planned
from adapters.receipts import Receipt


class Batches(tuple[Event, ...]):
    """What several say, as none of them is waited for."""

    apart: Sequence[tuple[Event, ...]]
    """Each of them: it is to reach the client by itself."""

    @classmethod
    def of(cls, apart: Sequence[tuple[Event, ...]]) -> Batches:
        batches = cls(chain.from_iterable(apart))
        batches.apart = apart
        return batches


class Fork(Adapter):
    """An adapter around several, of which one answers."""

    __slots__ = ()

    @property
    def described(self) -> str:
        """What people are shown of it."""
        return type(self).__name__

    @property
    def only(self) -> Adapter | None:
        """What follows in the nesting, where nobody else can answer."""
        return None


@dataclass(frozen=True, slots=True)
class Wrapper(Adapter):
    inner: Adapter

    def stream(self, request: ChatRequest) -> Events:
        return self.inner.stream(request)

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        return self.inner.plan(request)


def noted(
    planned: tuple[Planned, ...], receipt: Receipt, configured: frozenset[str] = frozenset()
) -> tuple[Planned, ...]:
    """The calls with something more in their receipts, and in what the config asked for."""
    return tuple(
        replace(call, receipt=receipt + call.receipt, configured=call.configured | configured)
        for call in planned
    )


def with_notes(batch: tuple[Event, ...], receipt: Receipt) -> tuple[Event, ...]:
    """The batch with something more in the receipt, if it opens the answer."""
    first = batch[0]
    if not receipt or type(first) is not Opened:
        return batch
    return (replace(first, receipt=receipt + first.receipt), *batch[1:])


async def noting(events: Events, receipt: Receipt) -> Events:
    """The stream with something more in its receipt."""
    async with aclosing(events):
        async for batch in events:
            yield with_notes(batch, receipt)
