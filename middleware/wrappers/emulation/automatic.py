"""Native or emulated: chosen by what the upstream knows of its model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from adapters.errors import BadRequest, Refused
from adapters.protocol import Adapter, ChatRequest, Events, Planned
from adapters.receipts import Note, Receipt
from middleware.wrappers.base import Wrapper, with_notes
from middleware.wrappers.emulation.ask.conversation import has_calls
from middleware.wrappers.emulation.recent import RecentRefusals
from middleware.wrappers.emulation.refusals import Lesser, first_call, refuses_tools

_EMULATED = Note(
    "tools_emulated", "", "the upstream says that this model has no tools: it was asked by prompt"
)


@dataclass(frozen=True, slots=True)
class Automatic(Wrapper):
    """Asks on the first request with tools; a model nobody knows is native until it refuses.

    `inner` has its native tools, perhaps with a net under them.
    """

    emulated: Adapter
    calls_tools: Callable[[str], Awaitable[bool | None]]
    refused: RecentRefusals = field(default_factory=RecentRefusals)
    """Models that refused tools: after a while they are asked again."""

    def stream(self, request: ChatRequest) -> Events:
        if not request.tools and not has_calls(request.messages):
            return self.inner.stream(request)
        return self._choose(request)

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        if request.model in self.refused:
            return self.emulated.plan(request)
        try:
            return self.inner.plan(request)
        except BadRequest as error:
            # The upstream was asked before: it knows by now that this model has no tools.
            if error.param != "tools":
                raise
            return self.emulated.plan(request)

    async def _choose(self, request: ChatRequest) -> Events:
        natively: Lesser | None = Lesser(request)
        receipt: Receipt = (_EMULATED,)
        if request.model in self.refused:
            natively = None
        elif await self.calls_tools(request.model) is False:
            natively, receipt = None, ()
        while natively is not None:
            opened = False
            try:
                async with aclosing(self._ask(natively)) as batches:
                    async for batch in batches:
                        yield batch if opened else with_notes(batch, natively.receipt)
                        opened = True
                return
            except Refused as error:
                natively = self._without_refused(natively, error, opened)
        async with aclosing(self.emulated.stream(request)) as batches:
            async for batch in batches:
                yield with_notes(batch, receipt)

    def _ask(self, asked: Lesser) -> Events:
        inner = self.inner.stream(asked.request)
        return first_call(inner) if asked.single else inner

    def _without_refused(self, asked: Lesser, error: Refused, opened: bool) -> Lesser | None:
        """What is asked then; None: by prompt. What refuses a part teaches nothing about tools."""
        if refuses_tools(error):
            self.refused.add(asked.request.model)
            return None
        lesser = None if opened else asked.without_refused(error)
        if lesser is None:
            raise error
        return lesser
