"""What an upstream refused, read from its words: tools as such, or a part it can do without."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import NamedTuple

from adapters.errors import GatewayError, Refused
from adapters.protocol import (
    ChatRequest,
    Event,
    Events,
    Finish,
    Json,
    Noted,
    ToolCallDelta,
    ToolCallStart,
)
from adapters.receipts import Note, Receipt

_TOOLS = r"[`'\"]?(?:tools?|functions?|(?:tool|function)[ _-]?(?:use|usage|call(?:s|ing)?))[`'\"]?"
# What is refused ends here: "tools in streaming mode" or "tools and images" are another matter.
_END = (
    r"\s*(?:$|[.!,;:(\\\"'}\n]|(?:yet|at all|currently|at this time)\b"
    r"|(?:for|with|in|by|on|via|from) (?:(?:this|the|that|your|current|selected|requested)\s)*"
    r"(?:api version|model|endpoint|deployment|provider|server|backend)\b)"
)
_NOT = r"(?:not|n't|cannot|no longer) (?:currently |yet )?(?:support(?:ed)?|allow|accept|provide)"
_REFUSALS = (
    rf"{_NOT} (?:the |any |native )?(?:use of |usage of )?{_TOOLS}{_END}",
    # As the subject: "strict mode is not supported for tools" speaks of strictness.
    rf"(?:^|[:.,;({{\"]|\berror\b)\s*(?:the )?(?:parameter |use of )?{_TOOLS} "
    rf"(?:parameter |feature )?(?:(?:is|are)(?:n't| not)(?: currently)?"
    rf" (?:supported|enabled|available|allowed)|(?:is|are) unsupported){_END}",
    rf"(?:unsupported|unknown|unrecognized) (?:request )?(?:parameter|argument|field)s?"
    rf"(?: supplied)?: ?{_TOOLS}(?:$|[.,\s])",
    r"no endpoints found that support tool use",
    # vLLM was started without what reads its model's calls.
    r"tool choice requires --enable-auto-tool-choice",
    r"tools param requires --jinja",
    r"不支持\s*(?:工具|函数|tools?|functions?|function\s?call(?:ing)?)\s*(?:调用|使用)?(?:$|[。.,，！\s])",
)  # fmt: skip
_REFUSAL = re.compile("|".join(f"(?:{one})" for one in _REFUSALS), re.IGNORECASE)
_UNWANTED = re.compile(
    r"\b(?:not|only|cannot|must|unsupported|unknown|un\w+ed|invalid|extra)\b|n't"
)


class Lesser(NamedTuple):
    """A request without the parts that were refused, if any were."""

    request: ChatRequest
    receipt: Receipt = ()
    single: bool = False
    """Only the first call of the answer was wanted."""

    def without_refused(self, error: GatewayError) -> Lesser | None:
        """Without what was refused now, too; None where that would mean something else."""
        if not _is_about_the_request(error) or not _UNWANTED.search(error.message.lower()):
            return None
        for words, less in _PARTS.items():
            found = re.search(words, error.message.lower()) and less(self.request)
            if found:
                receipt = self.receipt + found.receipt
                return Lesser(found.request, receipt, self.single or found.single)
        return None


def refuses_tools(error: GatewayError) -> bool:
    """Whether an upstream says that its model has no tools at all."""
    return _is_about_the_request(error) and _REFUSAL.search(error.message) is not None


def _is_about_the_request(error: GatewayError) -> bool:
    return isinstance(error, Refused) and error.status in (400, 404)


def _less_parallel(request: ChatRequest) -> Lesser | None:
    if "parallel_tool_calls" not in request.params:
        return None
    params = {name: one for name, one in request.params.items() if name != "parallel_tool_calls"}
    text = "the upstream refused the parameter: it was asked without"
    note = Note("parameter_dropped", "parallel_tool_calls", text)
    single = request.params["parallel_tool_calls"] is False
    return Lesser(replace(request, params=params), (note,), single)


def _less_choice(request: ChatRequest) -> Lesser | None:
    """Only what is so anyway can be left unsaid."""
    return Lesser(replace(request, tool_choice=None)) if request.tool_choice == "auto" else None


def _less_strict(request: ChatRequest) -> Lesser | None:
    tools = tuple(_unstrict(tool) for tool in request.tools)
    if tools == request.tools:
        return None
    text = "the upstream refused it: its arguments are not held to the schema"
    return Lesser(replace(request, tools=tools), (Note("strict_not_enforced", "tools", text),))


def _unstrict(tool: Json) -> Json:
    said = tool.get("function")
    if not isinstance(said, dict) or not said.get("strict"):
        return tool
    return {**tool, "function": {name: one for name, one in said.items() if name != "strict"}}


def _less_streamed(request: ChatRequest) -> Lesser | None:
    """The answer comes in one piece then, and is streamed from here."""
    call = replace(request.call, streamed=False)
    return Lesser(replace(request, call=call)) if request.call.streamed else None


_PARTS: Mapping[str, Callable[[ChatRequest], Lesser | None]] = {
    r"parallel[ _-](?:tool|function)|single tool": _less_parallel,
    r"tool[ _]?choice": _less_choice,
    r"\bstrict\b": _less_strict,
    r"\bstream": _less_streamed,
}


async def first_call(inner: Events) -> Events:
    """The answer with its first call alone."""
    left_out = 0
    async with aclosing(inner) as batches:
        async for batch in batches:
            kept = tuple(event for event in batch if not _is_further(event))
            left_out += sum(type(event) is ToolCallStart for event in batch if _is_further(event))
            if left_out and type(batch[-1]) is Finish:
                text = f"{left_out} further calls were left out: parallel_tool_calls is false"
                note = Note("parallel_calls_dropped", "parallel_tool_calls", text)
                kept = (*kept[:-1], Noted((note,)), kept[-1])
            if kept:
                yield kept


def _is_further(event: Event) -> bool:
    return isinstance(event, ToolCallStart | ToolCallDelta) and event.index > 0
