"""`EmulatedTools`: an adapter that gives tools to a model that has none, around any adapter."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import orjson

from adapters.errors import BadRequest, GatewayError, Refused
from adapters.protocol import Adapter, ChatRequest, Event, Events, Planned, TextDelta
from middleware.wrappers.base import Wrapper
from middleware.wrappers.emulation.ask.asking import (
    Emulation,
    PromptedRequest,
    correction,
    decided_first,
    prompted,
)
from middleware.wrappers.emulation.ask.constrain import constraint_for
from middleware.wrappers.emulation.text_answer import TextAnswer, in_parts, with_usage

_REMEMBERED, _MOST_REMEMBERED = 300.0, 256


@dataclass(frozen=True, slots=True)
class EmulatedTools(Wrapper):
    """Tools by prompt; a request without tools passes through untouched."""

    options: Emulation = field(default_factory=Emulation)
    further: Adapter | None = None
    """Takes what is asked once an answer has begun, when nobody outside may ask again."""
    # State between requests: parameters, the form among them, that were refused → until when they
    # count as such. Of whoever sends others nothing is known.
    unheld: dict[bytes, float] = field(default_factory=dict)

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
        try:
            planned = self.inner.plan(ask.request)
        except BadRequest:
            ask = prompted(request, self.options, hold_to_form=False) if ask.held else None
            if ask is None:
                raise
            planned = self.inner.plan(ask.request)
        return tuple(replace(one, receipt=ask.notes(one.receipt)) for one in planned)

    def _asked(self, request: ChatRequest) -> PromptedRequest | None:
        ask = prompted(request, self.options, hold_to_form=True)
        if ask is None or not ask.held or not self.unheld:
            return ask
        if self.unheld.get(_form(ask), 0.0) < time.monotonic():
            return ask
        return prompted(request, self.options, hold_to_form=False)

    def _remember(self, refused: PromptedRequest) -> None:
        """Called when the same was answered without the form: so it was the form."""
        self.unheld[_form(refused)] = time.monotonic() + _REMEMBERED
        if len(self.unheld) > _MOST_REMEMBERED:
            del self.unheld[next(iter(self.unheld))]

    async def _emulate(self, ask: PromptedRequest, request: ChatRequest) -> Events:
        turn = TextAnswer(ask)
        try:
            async for batch in self._read(turn):
                yield batch
        except (BadRequest, Refused) as error:
            if not ask.held or turn.opened or error.status != 400:
                raise
            free = prompted(request, self.options, hold_to_form=False)
            if free is None:
                raise
            async for batch in self._read(TextAnswer(free)):
                yield batch
            self._remember(ask)

    async def _decide(self, ask: PromptedRequest, request: ChatRequest) -> Events:
        """Only calls are shown of the decision; without one the answer is asked for."""
        turn = TextAnswer(ask)
        events: list[Event] = []
        async for batch in self._read(turn):
            events += batch
        if turn.calls:
            yield tuple(event for event in events if not isinstance(event, TextDelta))
            return
        answer = self._asked(replace(request, tool_choice="none"))
        assert answer is not None
        async for batch in self._read(TextAnswer(answer), self.further):
            yield with_usage(batch, turn.finish)

    async def _read(self, turn: TextAnswer, asked: Adapter | None = None) -> Events:
        async with aclosing(in_parts((asked or self.inner).stream(turn.ask.request))) as batches:
            async for batch in batches:
                if events := turn.take(batch):
                    yield events
        if turn.asks_again and self.options.reask:
            await self._correct(turn)
        if events := turn.end():
            yield events

    async def _correct(self, turn: TextAnswer) -> None:
        """Ask once more, for the faulty calls only."""
        way = constraint_for(turn.ask.tools, self.options.constraint)
        for held_by in (way, None) if way else (None,):
            asking = correction(turn.ask, "".join(turn.said), turn.faults, held_by)
            try:
                turn.correct(await self._whole(TextAnswer(asking)))
                return
            except (BadRequest, Refused):
                continue  # to be held to the form, perhaps
            except GatewayError:
                return  # the answer that is there counts

    async def _whole(self, turn: TextAnswer) -> TextAnswer:
        further = self.further or self.inner
        async with aclosing(in_parts(further.stream(turn.ask.request))) as batches:
            async for batch in batches:
                turn.take(batch)
        return turn


def _form(ask: PromptedRequest) -> bytes:
    """Stands for what an upstream is told beside the conversation, the form of calls included."""
    request = ask.request
    told = orjson.dumps([request.model, request.params, request.extra], default=repr)
    return blake2b(told, digest_size=16).digest()
