"""`Choices`: an adapter made of places, of which one answers."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from adapters.errors import BadRequest
from adapters.protocol import Adapter, ChatRequest, Events, Journey, Planned
from middleware.config.shape import Pick
from middleware.state.store import State
from middleware.wrappers.base import Fork
from middleware.wrappers.choices.alternative import Alternative
from middleware.wrappers.choices.conversation import LastPlace, conversation_of
from middleware.wrappers.choices.inquiry import Inquiry
from middleware.wrappers.choices.needs import Needs
from middleware.wrappers.choices.no_choice import Excluded, no_choice
from middleware.wrappers.choices.picks import LASTING, as_expected, moved_to_front, picked
from middleware.wrappers.retry import LONGEST_FAILING, Attempts


@dataclass(frozen=True, slots=True)
class ChoiceSettings:
    """What the config says of a model of choices."""

    pick: Pick = "order"
    sticky: bool = False
    native: bool = False
    """Tools by prompt will not do."""
    times: int = 2
    """How often one who failed may be asked again."""
    total: float = 600
    """Seconds until a request's end, whoever is asked."""
    keyed: bool = False
    """One of its places has several keys, which conversations are spread over."""


@dataclass(frozen=True, slots=True)
class Choices(Fork):
    name: str
    """Its public name."""
    places: Sequence[Alternative]
    fallback: Sequence[Alternative]
    settings: ChoiceSettings
    state: State

    @property
    def described(self) -> str:
        """Its name where people are shown the nesting."""
        names = [
            f"{place.name} (not available: {place.absent})" if place.absent else place.name
            for place in (*self.places, *self.fallback)
        ]
        return f"{type(self).__name__} of {', '.join(names)}"

    @property
    def only(self) -> Adapter | None:
        return None if self.fallback or len(self.places) > 1 else self.places[0].adapter

    async def stream(self, request: ChatRequest) -> Events:
        inquiry, where = await self._begun(request)
        try:
            first, events = await inquiry.opened()
            try:
                if self._is_elsewhere(inquiry, where):
                    await where.remember(inquiry.journey.pins[self.name])
                yield first
                async for batch in events:
                    yield batch
            finally:
                await events.aclose()
        finally:
            inquiry.end()

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        """Of the first as they are written, who can take it."""
        needs, excluded = self._needs(request), []
        for place in (*self.places, *self.fallback):
            name, model = place.at(request.model)
            reason = place.lacks(needs, self.settings.native, model)
            if reason is not None:
                excluded.append(Excluded(name, reason))
                continue
            try:
                return place.adapter.plan(request)
            except BadRequest as error:
                excluded.append(Excluded(name, "lossy", error))
        raise no_choice(self.name, excluded)

    async def _begun(self, request: ChatRequest) -> tuple[Inquiry, LastPlace]:
        settings, journey = self.settings, request.call.journey
        if journey is None:
            journey = Journey()
            request = replace(request, call=replace(request.call, journey=journey))
        conversation = self._conversation(request)
        where = LastPlace(self.state, request, conversation)
        if settings.sticky and self.state.marked:
            await where.look()
        needs = self._needs(request)
        order = await self._order(needs, conversation, journey.pins.get(self.name) or where.place)
        if request.call.capture is not None and (known := request.call.capture.expected()):
            order = as_expected(order, known)
        now = asyncio.get_running_loop().time()
        end = min(now + settings.total, request.call.deadline or math.inf)
        attempts = Attempts(end, now + LONGEST_FAILING)
        inquiry = Inquiry(
            self.name,
            request,
            journey,
            needs,
            order,
            attempts,
            conversation,
            settings.native,
            settings.times,
        )
        return inquiry, where

    def _needs(self, request: ChatRequest) -> Needs:
        return Needs(request, partial(self._somebody_sees, request.model))

    def _somebody_sees(self, model: str) -> bool:
        return any(one.sees(one.at(model)[1]) for one in (*self.places, *self.fallback))

    def _conversation(self, request: ChatRequest) -> str:
        """Which it is, if somebody asks: where nothing is marked, all are where the order says."""
        settings = self.settings
        sticks = settings.sticky and (self.state.marked or settings.pick != "order")
        return conversation_of(request) if settings.keyed or sticks else ""

    async def _order(self, needs: Needs, conversation: str, front: str) -> Sequence[Alternative]:
        pick, sticking = self.settings.pick, conversation if self.settings.sticky else ""
        if pick == "order" or len(self.places) == 1:
            return moved_to_front((*self.places, *self.fallback), front)
        if pick != "weight" or front not in {place.name for place in self.places}:
            places = await picked(pick, self.places, needs, sticking)
            return moved_to_front((*places, *self.fallback), front)
        # It may have more to do than its share, and be left to the end.
        return (*await picked(pick, self.places, needs, sticking, front), *self.fallback)

    def _is_elsewhere(self, inquiry: Inquiry, where: LastPlace) -> bool:
        """Whether the next turns have to be told where the conversation is now."""
        place = inquiry.answers
        assert place is not None
        inquiry.journey.pins[self.name] = place.name
        said = place is inquiry.first and self.settings.pick in LASTING
        return self.settings.sticky and bool(where.place or not said)
