"""`EmulatedTools`: an adapter that gives tools to a model that has none, around any adapter."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import orjson

from adapters.errors import BadRequest, GatewayError, Refused
from adapters.protocol import Adapter, ChatRequest, Event, Events, Planned, TextDelta
from middleware.wrappers.base import Wrapper
from middleware.wrappers.emulation.ask.constrain import constraint_for
from middleware.wrappers.emulation.ask.prompted_request import (
    PromptedRequest,
    correction,
    decided_first,
    prompt_for,
)
from middleware.wrappers.emulation.passage import read
from middleware.wrappers.emulation.recent import RecentRefusals
from middleware.wrappers.emulation.settings import Emulation
from middleware.wrappers.emulation.text_answer import TextAnswer, with_usage


@dataclass(frozen=True, slots=True)
class EmulatedTools(Wrapper):
    """Tools by prompt; a request without tools passes through untouched."""

    options: Emulation = field(default_factory=Emulation)
    further: Adapter | None = None
    """Takes what is asked once an answer has begun, when nobody outside may ask again."""
    refused_forms: RecentRefusals = field(default_factory=RecentRefusals)
    """Parameters, the form among them. Of whoever sends others nothing is known."""

    def stream(self, request: ChatRequest) -> Events:
        prompt = self._prompt(request)
        if prompt is None:
            return self.inner.stream(request)
        decision = decided_first(prompt, request) if self.options.decide else None
        return self._decide(decision, request) if decision else self._emulate(prompt, request)

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        prompt = self._prompt(request)
        if prompt is None:
            return self.inner.plan(request)
        try:
            planned = self.inner.plan(prompt.request)
        except BadRequest:
            if not prompt.constrained:
                raise
            prompt = prompt_for(request, self.options, constrain=False)
            assert prompt is not None
            planned = self.inner.plan(prompt.request)
        return tuple(replace(call, receipt=prompt.notes(call.receipt)) for call in planned)

    def _prompt(self, request: ChatRequest) -> PromptedRequest | None:
        prompt = prompt_for(request, self.options, constrain=True)
        if prompt is None or not prompt.constrained or not self.refused_forms:
            return prompt
        if _form(prompt) not in self.refused_forms:
            return prompt
        return prompt_for(request, self.options, constrain=False)

    async def _emulate(self, prompt: PromptedRequest, request: ChatRequest) -> Events:
        answer = TextAnswer(prompt)
        try:
            async for batch in self._read(answer):
                yield batch
        except (BadRequest, Refused) as error:
            if not prompt.constrained or answer.opened or error.status != 400:
                raise
            free = prompt_for(request, self.options, constrain=False)
            if free is None:
                raise
            async for batch in self._read(TextAnswer(free)):
                yield batch
            # The same was answered without the form: so it was the form.
            self.refused_forms.add(_form(prompt))

    async def _decide(self, prompt: PromptedRequest, request: ChatRequest) -> Events:
        """Only calls are shown of the decision; without one the answer is asked for."""
        answer = TextAnswer(prompt)
        events: list[Event] = []
        async for batch in self._read(answer):
            events += batch
        if answer.calls:
            yield tuple(event for event in events if not isinstance(event, TextDelta))
            return
        asking = self._prompt(replace(request, tool_choice="none"))
        assert asking is not None
        async for batch in self._read(TextAnswer(asking), self.further):
            yield with_usage(batch, answer.finish)

    async def _read(self, answer: TextAnswer, adapter: Adapter | None = None) -> Events:
        inner = adapter or self.inner
        async with aclosing(read(inner.stream(answer.prompt.request), answer)) as batches:
            async for batch in batches:
                yield batch
        if answer.needs_correction and self.options.reask:
            await self._correct(answer)
        if events := answer.end():
            yield events

    async def _correct(self, answer: TextAnswer) -> None:
        """Ask once more, for the faulty calls only."""
        way = constraint_for(answer.prompt.tools, self.options.constraint)
        for constraint in (way, None) if way else (None,):
            asking = correction(answer.prompt, "".join(answer.texts), answer.faults, constraint)
            try:
                answer.correct(await self._whole(TextAnswer(asking)))
                return
            except (BadRequest, Refused):
                continue  # to be held to the form, perhaps
            except GatewayError:
                return  # the answer that is there counts

    async def _whole(self, answer: TextAnswer) -> TextAnswer:
        further = self.further or self.inner
        async with aclosing(read(further.stream(answer.prompt.request), answer)) as batches:
            async for _ in batches:
                pass
        return answer


def _form(prompt: PromptedRequest) -> bytes:
    """Stands for what an upstream is told beside the conversation, the form of calls included."""
    request = prompt.request
    form = orjson.dumps([request.model, request.params, request.extra], default=repr)
    return blake2b(form, digest_size=16).digest()
