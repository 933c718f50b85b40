"""`ReasonThenAnswer`: an adapter of two adapters."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field

from adapters.errors import GatewayError
from adapters.protocol import Adapter, ChatRequest, Events, Planned
from adapters.receipts import Note
from adapters.shared.search import SearchFailure, as_text
from middleware.wrappers.base import noted
from middleware.wrappers.pipeline.answer import PipelineAnswer
from middleware.wrappers.pipeline.reader import Thought
from middleware.wrappers.pipeline.request import Pipeline, PipelineRequest

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
        task, answer = PipelineRequest(request, self.pipeline), PipelineAnswer()
        if task.thinks:
            # What the answerer will refuse is not worth a thought.
            answer.planned = self.answerer.plan(task.to_answerer(_NOT_YET))[-1]
            async with aclosing(self._think(task, answer)) as thinking:
                async for batch in thinking:
                    yield batch
        elif task.lost:
            answer.note("thought_lost", "the thought of this question is not known any more")
        answerer = self.answerer.stream(task.to_answerer(answer.thought.text()))
        async with aclosing(answerer) as answering:
            async for batch in answering:
                if events := answer.read_answerer(batch):
                    yield events

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        task = PipelineRequest(request, self.pipeline)
        if not task.thinks:
            return self.answerer.plan(task.to_answerer(""))
        thinking, receipt = task.to_reasoner("", None)
        planned = noted(self.reasoner.plan(thinking), receipt, thinking.configured)
        return (*planned, *self.answerer.plan(task.to_answerer(_NOT_YET)))

    async def _think(self, task: PipelineRequest, answer: PipelineAnswer) -> Events:
        results = await self._search(task, answer)
        if results and self.pipeline.search_show:
            yield answer.show(results + "\n\n")
        request, receipt = task.to_reasoner(results, _half_of(task.request.call.deadline))
        answer.receipt += receipt
        answer.prompt = request.messages
        for again in (True, False):
            try:
                async with aclosing(self._listen(request, answer)) as thinking:
                    async for batch in thinking:
                        yield batch
                break
            except GatewayError as error:
                if not (again and answer.may_start_over(error)):
                    self._pass_over(error, answer)
                    break
                answer.thought = Thought()
        if answer.thought.pieces and self.pipeline.separator:
            yield answer.show(self.pipeline.separator)
        # The loop closes what it was told to close in its next round: before the answerer is asked.
        await asyncio.sleep(0)

    async def _listen(self, request: ChatRequest, answer: PipelineAnswer) -> Events:
        """Ask the reasoner, and leave it the moment its answer begins."""
        async with aclosing(self.reasoner.stream(request)) as events:
            async for batch in events:
                if seen := answer.read_reasoner(batch):
                    yield seen
                if answer.thought.answered:
                    return

    async def _search(self, task: PipelineRequest, answer: PipelineAnswer) -> str:
        if self.pipeline.search is None or not task.searches:
            return ""
        try:
            answer.findings = await self.pipeline.search.search(task.question())
        except SearchFailure as failure:
            answer.note("search_failed", f"{failure}; it was thought without")
        return as_text(answer.findings)

    def _pass_over(self, error: GatewayError, answer: PipelineAnswer) -> None:
        if self.pipeline.reasoner_failure == "error":
            raise error
        if answer.thought.pieces:
            text = f"the thought was used as far as it came: {error.message}"
        else:
            text = f"answered without a thought: {error.message}"
        answer.receipt += (Note("reasoner_failed", "", text),)


def _half_of(deadline: float | None) -> float | None:
    """The reasoner's share of the time that is left."""
    if deadline is None:
        return None
    now = asyncio.get_running_loop().time()
    return now + (deadline - now) / 2
