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
from middleware.wrappers.emulation.refusals import first_call, refuses_tools, without_refused

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
        receipt: Receipt = (_EMULATED,)
        if request.model in self.refused:
            pass
        elif await self.calls_tools(request.model) is False:
            receipt = ()
        else:
            try:
                async with aclosing(self._native(request)) as batches:
                    async for batch in batches:
                        yield batch
                return
            except Refused as error:
                if not refuses_tools(error):
                    raise
                self.refused.add(request.model)
        async with aclosing(self.emulated.stream(request)) as batches:
            async for batch in batches:
                yield with_notes(batch, receipt)

    async def _native(self, request: ChatRequest) -> Events:
        """What refuses a part is asked without it: that teaches nothing about its tools."""
        receipt: Receipt = ()
        single = False
        while True:
            opened = False
            inner = self.inner.stream(request)
            try:
                async with aclosing(first_call(inner) if single else inner) as batches:
                    async for batch in batches:
                        yield batch if opened else with_notes(batch, receipt)
                        opened = True
                return
            except Refused as error:
                again = not opened and not refuses_tools(error)
                lesser = without_refused(request, error) if again else None
                if lesser is None:
                    raise
                request, receipt = lesser.request, receipt + lesser.receipt
                single = single or lesser.single
