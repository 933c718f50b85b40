"""`Wrapper`: an adapter around an adapter, which hands on what it does not change."""

from __future__ import annotations

from dataclasses import dataclass, replace

from adapters.protocol import Adapter, ChatRequest, Event, Events, Opened, Planned
from adapters.receipts import Receipt


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
