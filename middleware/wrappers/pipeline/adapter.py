"""`ReasonThenAnswer`: an adapter of two adapters."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from adapters.errors import GatewayError
from adapters.protocol import Adapter, ChatRequest, Events, Planned
from adapters.receipts import Note
from middleware.wrappers.pipeline.answer import PipelineAnswer
from middleware.wrappers.pipeline.request import Pipeline, PipelineRequest
from middleware.wrappers.pipeline.search import SearchFailure, told

_NOT_YET = "(the reasoner's thought)"
"""Stands for the thought where a call is only planned."""


@dataclass(frozen=True, slots=True)
class ReasonThenAnswer(Adapter):
    """The reasoner thinks and is closed; the answerer answers, with the thought before it.

    Its own turn, the thought, comes back through a `Recall` around it.
    """

    reasoner: Adapter
    answerer: Adapter
    pipeline: Pipeline = field(default_factory=Pipeline)

    async def stream(self, request: ChatRequest) -> Events:
        asked, gathered = PipelineRequest(request, self.pipeline), PipelineAnswer()
        if asked.thinks:
            # What the answerer will refuse is not worth a thought.
            gathered.planned = self.answerer.plan(asked.to_answerer(_NOT_YET))[-1]
            async with aclosing(self._think(asked, gathered)) as thinking:
                async for batch in thinking:
                    yield batch
        elif asked.lost:
            gathered.note("thought_lost", "the thought of this question is not known any more")
        answerer = self.answerer.stream(asked.to_answerer(gathered.thought.text()))
        async with aclosing(answerer) as answering:
            async for batch in answering:
                if said := gathered.answering(batch):
                    yield said

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        asked = PipelineRequest(request, self.pipeline)
        if not asked.thinks:
            return self.answerer.plan(asked.to_answerer(""))
        thinking, receipt = asked.to_reasoner("", None)
        planned = [
            replace(
                call,
                receipt=receipt + call.receipt,
                configured=call.configured | thinking.configured,
            )
            for call in self.reasoner.plan(thinking)
        ]
        return (*planned, *self.answerer.plan(asked.to_answerer(_NOT_YET)))

    async def _think(self, asked: PipelineRequest, gathered: PipelineAnswer) -> Events:
        found = await self._search(asked, gathered)
        if found and self.pipeline.search_show:
            yield gathered.showing(found + "\n\n")
        request, receipt = asked.to_reasoner(found, _half(asked.request.call.deadline))
        gathered.receipt += receipt
        gathered.told = request.messages
        for again in (True, False):
            try:
                async with aclosing(self._heard(request, gathered)) as thinking:
                    async for batch in thinking:
                        yield batch
                break
            except GatewayError as error:
                if not (again and gathered.starts_over(error)):
                    self._failed(error, gathered)
                    break
        if gathered.thought.pieces and self.pipeline.separator:
            yield gathered.showing(self.pipeline.separator)
        # The loop closes what it was told to close in its next round: before the answerer is asked.
        await asyncio.sleep(0)

    async def _heard(self, request: ChatRequest, gathered: PipelineAnswer) -> Events:
        """Ask the reasoner, and leave it the moment its answer begins."""
        async with aclosing(self.reasoner.stream(request)) as events:
            async for batch in events:
                if shown := gathered.thinking(batch):
                    yield shown
                if gathered.thought.answered:
                    return

    async def _search(self, asked: PipelineRequest, gathered: PipelineAnswer) -> str:
        if self.pipeline.search is None or not asked.searches:
            return ""
        try:
            gathered.findings = await self.pipeline.search.search(asked.question())
        except SearchFailure as failure:
            gathered.note("search_failed", f"{failure}; it was thought without")
        return told(gathered.findings)

    def _failed(self, error: GatewayError, gathered: PipelineAnswer) -> None:
        if self.pipeline.reasoner_failure == "error":
            raise error
        if gathered.thought.pieces:
            text = f"the thought was used as far as it came: {error.message}"
        else:
            text = f"answered without a thought: {error.message}"
        gathered.receipt += (Note("reasoner_failed", "", text),)


def _half(deadline: float | None) -> float | None:
    """The reasoner's share of the time that is left."""
    if deadline is None:
        return None
    now = asyncio.get_running_loop().time()
    return now + (deadline - now) / 2
