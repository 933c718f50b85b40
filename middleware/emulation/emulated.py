"""`EmulatedTools`: an adapter that gives tools to a model that has none, around any adapter."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field, replace

from adapters.errors import GatewayError, Refused
from adapters.protocol import Adapter, ChatRequest, Event, Events, Planned, TextDelta
from middleware.emulation.asking import Asked, Emulation, asked, correction, decided_first
from middleware.emulation.constrain import held
from middleware.emulation.turn import Turn, in_parts, with_usage

_MOST_REMEMBERED = 256


@dataclass(slots=True)
class EmulatedTools:
    """Tools by prompt; a request without tools passes through untouched."""

    inner: Adapter
    options: Emulation = field(default_factory=Emulation)
    # State between requests, because the upstream will not change its mind: the models that
    # refused to be held to a form.
    unheld: set[str] = field(default_factory=set)

    def stream(self, request: ChatRequest) -> Events:
        ask = self._asked(request)
        if ask is None:
            return self.inner.stream(request)
        decision = decided_first(ask, request) if self.options.decide else None
        return self._emulate(ask, request) if decision is None else self._decide(decision, request)

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        ask = self._asked(request)
        if ask is None:
            return self.inner.plan(request)
        planned = self.inner.plan(ask.request)
        return tuple(replace(one, receipt=ask.receipt + one.receipt) for one in planned)

    def _asked(self, request: ChatRequest) -> Asked | None:
        return asked(request, self.options, request.model not in self.unheld)

    async def _emulate(self, ask: Asked, request: ChatRequest) -> Events:
        turn = Turn(ask)
        try:
            async for batch in self._read(turn):
                yield batch
        except Refused as error:
            if not ask.held or turn.opened or error.status != 400:
                raise
            if len(self.unheld) < _MOST_REMEMBERED:
                self.unheld.add(request.model)
            free = asked(request, self.options, hold_to_form=False)
            if free is None:
                raise
            async for batch in self._read(Turn(free)):
                yield batch

    async def _decide(self, ask: Asked, request: ChatRequest) -> Events:
        """Only calls are shown of the decision; without one the answer is asked for."""
        turn = Turn(ask)
        events: list[Event] = []
        async for batch in self._read(turn):
            events += batch
        if turn.calls:
            yield tuple(event for event in events if not isinstance(event, TextDelta))
            return
        answer = self._asked(replace(request, tool_choice="none"))
        assert answer is not None
        async for batch in self._read(Turn(answer)):
            yield with_usage(batch, turn.finish)

    async def _read(self, turn: Turn) -> Events:
        async with aclosing(in_parts(self.inner.stream(turn.ask.request))) as batches:
            async for batch in batches:
                if events := turn.take(batch):
                    yield events
        if turn.asks_again and self.options.reask:
            await self._correct(turn)
        if events := turn.end():
            yield events

    async def _correct(self, turn: Turn) -> None:
        """Ask once more, for the faulty calls only."""
        ask = turn.ask
        free = ask.request.model in self.unheld
        way = None if free else held(ask.tools, self.options.constraint)
        answer = Turn(correction(ask, "".join(turn.said), turn.faults, way))
        try:
            async with aclosing(in_parts(self.inner.stream(answer.ask.request))) as batches:
                async for batch in batches:
                    answer.take(batch)
        except GatewayError:
            return  # the answer that is there counts
        turn.correct(answer)
