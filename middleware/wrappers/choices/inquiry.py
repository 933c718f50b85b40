"""One ask: places and keys in turn, until one answers or nobody is left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from adapters.errors import BadRequest, GatewayError, Unavailable, UpstreamError
from adapters.outcomes import PassedOver, Passing
from adapters.protocol import ChatRequest, Event, Events, Journey, UpstreamCall
from middleware.wrappers.calls import outcome_of
from middleware.wrappers.choices.alternative import Alternative
from middleware.wrappers.choices.needs import Needs
from middleware.wrappers.choices.no_choice import Excluded, no_choice
from middleware.wrappers.readiness import KeyTurn
from middleware.wrappers.retry import Attempts, Budget, pause_before

_MOST_CALLS, _MOST_AT_ONE = 3, 2
"""Upstream calls, and of those at one place while another is left."""
_OF_A_KEY = frozenset(("rate_limited", "quota", "refused"))
"""Another key may be luckier."""
Opening = tuple[tuple[Event, ...], Events]


class _Next(NamedTuple):
    """Somebody who may still be asked, after so many seconds."""

    wait: float
    place: Alternative
    turn: KeyTurn
    again: bool
    """It has failed in this ask."""


@dataclass(slots=True)
class Inquiry:
    model: str
    """The public name of the model of choices."""
    request: ChatRequest
    journey: Journey
    needs: Needs
    order: Sequence[Alternative]
    attempts: Attempts
    conversation: str = ""
    native: bool = False
    """Tools by prompt will not do."""
    times: int = 2
    """How often one who failed may be asked again."""
    first: Alternative | None = None
    """The first in the order that can answer such a request."""
    answers: Alternative | None = None
    calls: int = 0
    _failure: GatewayError | None = None
    _failures: dict[tuple[str, str], GatewayError] = field(default_factory=dict)
    """Alternative, and key if it was the key's → what it failed with last."""
    _excluded: tuple[Excluded, ...] = ()
    _open: Alternative | None = None
    _outgrown: int = 0
    """A context that was too small."""
    _repeating: tuple[Budget, ...] = ()

    async def opened(self) -> Opening:
        """The first events and the stream they began."""
        for place in self.order:
            if self.calls >= _MOST_CALLS:
                break
            if opening := await self._at(place):
                return opening
        return await self._late()

    def end(self) -> None:
        if self.answers is not None:
            self.answers.end()
        for budget in self._repeating:
            budget.repeating -= 1

    async def _at(self, place: Alternative) -> Opening | None:
        """Ask a place, with another of its keys if one is limited or refused."""
        name, model = place.at(self.request.model)
        if self._is_passed_over(place, name, model):
            return None
        turns = [turn for turn in await place.turns(model, self.conversation) if not turn.resting]
        if not turns:
            self._pass_over(name, "resting")
        for made, turn in enumerate(turns):
            if self.calls >= _MOST_CALLS or (made == _MOST_AT_ONE and self._others(place)):
                break
            if opening := await self._call(place, turn):
                return opening
            if (name, turn.name) not in self._failures:  # it was not the key's
                break
        return None

    def _is_passed_over(self, place: Alternative, name: str, model: str) -> bool:
        if reason := self._why_not(place, model):
            self._exclude(Excluded(name, reason))
            return True
        self.first = self.first or place
        if place.is_open(model):
            self._open = self._open or place
            self._pass_over(name, "open")
            return True
        return False

    def _why_not(self, place: Alternative, model: str) -> Passing | None:
        lacking = place.lacks(self.needs, self.native, model)
        if lacking or not self._outgrown:
            return lacking
        known = place.traits(model).context_length
        return "no_context" if (known or 0) <= self._outgrown else None

    def _others(self, place: Alternative) -> bool:
        """Whether one is left behind this one that could be asked at once."""
        behind = self.order[self.order.index(place) + 1 :]
        models = [(one, one.at(self.request.model)[1]) for one in behind]
        return any(not (self._why_not(*each) or each[0].is_open(each[1])) for each in models)

    async def _call(self, place: Alternative, turn: KeyTurn) -> Opening | None:
        """Ask a place with a key; None: it failed, and another may be asked."""
        now = asyncio.get_running_loop().time
        if (began := now()) >= self.attempts.end:
            raise self._too_late()
        before = len(self.journey.steps)
        place.begin()
        try:
            events = place.adapter.stream(self._request(place, turn))
            first = await anext(events)
            self.answers = place
        except GatewayError as error:
            made = self.journey.steps[before:]
            self._failed(place, turn, error)
            # Some ask twice: by prompt, where an upstream has no tools of its own.
            name = self._name(place)
            twice = sum(type(one) is UpstreamCall and one.place == name for one in made) - 1
            self.calls += max(0, twice)
            return None
        finally:
            if self.answers is None:
                place.end()
        place.answered(now() - began)
        return first, events

    def _request(self, place: Alternative, turn: KeyTurn) -> ChatRequest:
        """A first call needs to be told of no deadline, unless it may have to wait for it."""
        if not (self._failures or place.queues or place.several_keys):
            return self.request
        chosen = turn.name if place.several_keys else ""
        call = replace(self.request.call, deadline=self.attempts.end, chosen=chosen)
        return replace(self.request, call=call)

    def _failed(self, place: Alternative, turn: KeyTurn, error: GatewayError) -> None:
        """Note it, or raise what no other place may answer."""
        name, model = place.at(self.request.model)
        if isinstance(error, BadRequest):  # its translation refused, nothing was sent
            self._exclude(Excluded(name, "lossy", error))
        elif not isinstance(error, UpstreamError):
            if error.again == "never":
                raise error
            self._failures[name, ""] = error
        else:
            self.calls += 1
            if not self._outgrows(place, model, error) and (error.begun or error.again == "never"):
                raise error
            place.failed()
            of_key = outcome_of(error) in _OF_A_KEY
            self._failures[name, turn.name if of_key else ""] = error
            self._failure = error

    def _outgrows(self, place: Alternative, model: str, error: GatewayError) -> bool:
        """Whether a place with a larger context may be asked."""
        size = place.traits(model).context_length
        if error.code != "context_length_exceeded" or error.begun or not size:
            return False
        self._outgrown = max(self._outgrown, size)
        return True

    # Nobody is left who could be asked at once ---------------------------------------------------

    async def _late(self) -> Opening:
        last = False
        while not last and (found := await self._next()):
            last = not self._may_wait(found)
            if last and found.again:
                break
            if found.again:
                self._count(found.place.budget)
            if found.wait and not last:
                await self.attempts.pause(found.wait)
            if opening := await self._call(found.place, found.turn):
                return opening
        if self._open is not None and not self._failures:  # it says when it may be asked again
            self.journey.steps.remove(PassedOver(self._name(self._open), "open"))
            if opening := await self._call(self._open, KeyTurn("")):
                return opening
        raise self._refusal()

    async def _next(self) -> _Next | None:
        """Whoever may be asked soonest."""
        if self.calls >= _MOST_CALLS:
            return None
        found = [one for place in self.order for one in await self._of(place)]
        return min(found, key=lambda one: one.wait, default=None)

    async def _of(self, place: Alternative) -> list[_Next]:
        name, model = place.at(self.request.model)
        if self._why_not(place, model) or place.is_open(model):
            return []
        if any(one.place == name for one in self._excluded):
            return []
        found = []
        for turn in await place.turns(model, self.conversation):
            error = self._failures.get((name, "")) or self._failures.get((name, turn.name))
            if error is None:
                found.append(_Next(turn.resting, place, turn, again=False))
            elif self._may_repeat(place, error):
                wait = max(turn.resting, pause_before(error, self.attempts.repeated))
                found.append(_Next(wait, place, turn, again=True))
        return found

    def _may_repeat(self, place: Alternative, error: GatewayError) -> bool:
        if not isinstance(error, UpstreamError) or error.again != "same":
            return False
        allowed = place.budget in self._repeating or place.budget.allows()
        return allowed and self.attempts.repeated < self.times

    def _may_wait(self, found: _Next) -> bool:
        if found.again:
            return self.attempts.may_wait(found.wait)
        return self.attempts.has_time(found.wait)

    def _count(self, budget: Budget) -> None:
        self.attempts.repeated += 1
        if budget not in self._repeating:
            self._repeating += (budget,)
            budget.repeating += 1

    def _refusal(self) -> GatewayError:
        """What the client is told."""
        if self._failure is not None:
            if self._failure.again == "same":  # the client's own attempts would multiply ours
                self._failure.again = "elsewhere"
            return self._failure
        if self._failures:
            return next(reversed(self._failures.values()))
        return no_choice(self.model, self._excluded)

    def _too_late(self) -> GatewayError:
        return Unavailable(
            f"No model behind '{self.model}' answered in time. If they need longer, raise "
            "timeouts.total in the config.",
            code="upstream_timeout",
            status=504,
        )

    def _exclude(self, excluded: Excluded) -> None:
        self._excluded += (excluded,)
        self._pass_over(excluded.place, excluded.reason)

    def _name(self, place: Alternative) -> str:
        return place.at(self.request.model)[0]

    def _pass_over(self, place: str, reason: Passing) -> None:
        self.journey.steps.append(PassedOver(place, reason))
