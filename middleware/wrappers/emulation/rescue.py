"""`LeakRescue`: calls that a server with native tools missed and left in the text."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.protocol import ChatRequest, Events
from adapters.shared.toolbox import toolbox
from middleware.wrappers.base import Wrapper
from middleware.wrappers.emulation.ask.prompted_request import PromptedRequest, wants_json
from middleware.wrappers.emulation.passage import read
from middleware.wrappers.emulation.read.rules import ReadRules
from middleware.wrappers.emulation.text_answer import TextAnswer


@dataclass(frozen=True, slots=True)
class LeakRescue(Wrapper):
    """Reads the text of answers to requests with tools; what is asked stays as it is."""

    def stream(self, request: ChatRequest) -> Events:
        # A text that is read anew has none: who asks for them gets the text as it came.
        if not request.tools or request.tool_choice == "none" or request.params.get("logprobs"):
            return self.inner.stream(request)
        return read(self.inner.stream(request), TextAnswer(_prompt(request)), ends=True)


def _prompt(request: ChatRequest) -> PromptedRequest:
    box = toolbox(request)
    demanded = box.mode in ("required", "named")
    rules = ReadRules(bare=not wants_json(request.params), prose=demanded, thoughts=False, hold=0)
    return PromptedRequest(request, box.unfolded, box, rules, ())
