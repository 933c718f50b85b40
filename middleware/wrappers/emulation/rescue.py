"""`LeakRescue`: calls that a server with native tools missed and left in the text."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass

from adapters.protocol import ChatRequest, Events
from adapters.shared.toolbox import toolbox
from middleware.wrappers.base import Wrapper
from middleware.wrappers.emulation.ask.prompted_request import PromptedRequest, wants_json
from middleware.wrappers.emulation.read.rules import ReadRules
from middleware.wrappers.emulation.text_answer import TextAnswer, in_parts


@dataclass(frozen=True, slots=True)
class LeakRescue(Wrapper):
    """Reads the text of answers to requests with tools; what is asked stays as it is."""

    def stream(self, request: ChatRequest) -> Events:
        if not request.tools or request.tool_choice == "none":
            return self.inner.stream(request)
        return self._read(request)

    async def _read(self, request: ChatRequest) -> Events:
        answer = TextAnswer(_prompt(request))
        async with aclosing(in_parts(self.inner.stream(request))) as batches:
            async for batch in batches:
                if events := answer.take(batch):
                    yield events
        if events := answer.end():
            yield events


def _prompt(request: ChatRequest) -> PromptedRequest:
    box = toolbox(request)
    demanded = box.mode in ("required", "named")
    rules = ReadRules(bare=not wants_json(request.params), prose=demanded, thoughts=False, hold=0)
    return PromptedRequest(request, box.unfolded, box, rules, ())
