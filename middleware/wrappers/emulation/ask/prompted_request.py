"""From a request with tools to one without: what is sent, and how its answer is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from adapters.errors import BadRequest
from adapters.protocol import ChatRequest, Json
from adapters.receipts import Note, Receipt
from adapters.shared.history import rounds, text_of
from adapters.shared.toolbox import Tool, Toolbox, toolbox
from middleware.wrappers.emulation.ask.constrain import Constraint, constraint_for
from middleware.wrappers.emulation.ask.conversation import (
    first_question,
    has_calls,
    instructed,
    rendered,
)
from middleware.wrappers.emulation.ask.prompt import Ask, decision, instructions, signature
from middleware.wrappers.emulation.formats.raw_call import Fault
from middleware.wrappers.emulation.read.rules import ReadRules
from middleware.wrappers.emulation.settings import Emulation, Way

_OF_TOOLS = frozenset(("parallel_tool_calls", "functions", "function_call"))
# Of Ollama, llama.cpp, vLLM and SGLang.
_FORMS = frozenset({
    "ebnf", "format", "grammar", "guided_grammar", "guided_json", "json_schema",
    "structured_outputs",
})  # fmt: skip
_STOPS = ("\nTOOL_RESULT", "\nObservation:")
_MOST_STOPS = 4
_CORRECTION_TOKENS = 1024
_MOST_COMPLAINTS = 8
_CORRECTED = "Answer with the corrected block only."
_CORRECTED_OR_NONE = (
    "Answer with the corrected block only, or with NO_TOOL if none of the tools does that."
)


class PromptedRequest(NamedTuple):
    """A request as a model without tools gets it."""

    request: ChatRequest
    tools: tuple[Tool, ...]
    """What may come out, under the client's names."""
    box: Toolbox
    rules: ReadRules
    receipt: Receipt
    constrained: bool = False
    """The upstream is held to the form."""
    added: frozenset[str] = frozenset()
    """Fields that emulation asks with and the client did not send: their loss is none of its."""

    def notes(self, inner: Receipt) -> Receipt:
        """What was not taken as the client said it, here and below."""
        added = self.added
        told = tuple(note for note in inner if note.top not in added) if added else inner
        return self.receipt + told


def prompt_for(request: ChatRequest, options: Emulation, constrain: bool) -> PromptedRequest | None:
    """What to send; None where tools play no part."""
    if not request.tools and not has_calls(request.messages):
        return None
    box = toolbox(request)
    box = _by_own_names(replace(box, tools=box.unfolded, key=b""))
    tools = _offered(box)
    messages = rendered(request.messages, tools, options.result_length)
    plain = replace(request, messages=messages, tools=(), tool_choice=None)
    if not tools or box.mode == "none":
        params = _without(request.params, _OF_TOOLS)
        rules = ReadRules(trained=False, bare=False, withheld=True, prompted=True)
        return PromptedRequest(replace(plain, params=params), box.tools, box, rules, box.receipt)
    forced = box.mode in ("required", "named")
    way = _constraint(tools, request, options.constraint) if forced and constrain else None
    ask = Ask(box.mode, box.named, box.parallel, way is not None)
    text = instructions(tools, ask, first_question(request.messages))
    params, receipt = _params(request.params)
    held = way or Constraint()
    sent = replace(
        plain,
        messages=instructed(messages, text),
        params={**params, **held.params},
        extra={**request.extra, **held.extra},
    )
    rules = ReadRules(
        bare=way is not None or not wants_json(request.params),
        forced=forced,
        hold=0 if way else options.hold,
        prompted=True,
        known=tuple(dict.fromkeys(rounds(request.messages).values())),
    )
    added = frozenset((*held.params, *held.extra, *(params.keys() - request.params.keys())))
    return PromptedRequest(sent, tools, box, rules, box.receipt + receipt, way is not None, added)


def decided_first(prompt: PromptedRequest, request: ChatRequest) -> PromptedRequest | None:
    """The question whether to call a tool, in place of the user's; None where it is no question."""
    last = request.messages[-1]
    if not prompt.tools or prompt.rules.forced or prompt.rules.withheld or last["role"] != "user":
        return None
    question = text_of(last.get("content"))
    text = decision(prompt.tools, question, first_question(request.messages))
    earlier = rendered(request.messages[:-1], prompt.tools)
    asking = replace(prompt.request, messages=(*earlier, {"role": "user", "content": text}))
    return prompt._replace(request=asking)


def _by_own_names(box: Toolbox) -> Toolbox:
    """The tools under the client's own names: a prompt needs no ASCII."""
    originals = box.originals
    if not originals:
        return box
    return replace(
        box,
        tools=tuple(replace(tool, name=originals.get(tool.name, tool.name)) for tool in box.tools),
        named=originals.get(box.named, box.named),
        custom=frozenset(originals.get(name, name) for name in box.custom),
        originals={},
    )


def _offered(box: Toolbox) -> tuple[Tool, ...]:
    """The tools in play."""
    if box.mode != "named":
        return box.tools
    named = tuple(tool for tool in box.tools if tool.name == box.named)
    if not named:
        raise BadRequest(
            f"tool_choice names the tool '{box.named}', which is not among 'tools'. "
            "Declare it there, or choose one that is.",
            param="tool_choice",
        )
    return named


def _constraint(tools: Sequence[Tool], request: ChatRequest, way: Way) -> Constraint | None:
    """A form of the client's own outranks ours."""
    form = wants_json(request.params) or _FORMS & request.extra.keys()
    return None if form else constraint_for(tools, way)


def wants_json(params: Mapping[str, Any]) -> bool:
    shape = params.get("response_format")
    return isinstance(shape, dict) and shape.get("type") in ("json_object", "json_schema")


def _without(params: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name not in names}


def _params(params: Mapping[str, Any]) -> tuple[dict[str, Any], Receipt]:
    """What goes along; tokens and their probabilities do not survive reading the text."""
    kept = _without(params, _OF_TOOLS)
    notes = tuple(
        Note("parameter_dropped", name, "tools are emulated: the text is read anew")
        for name in ("logprobs", "top_logprobs")
        if kept.pop(name, None)
    )
    stops = kept.get("stop") or ()
    stops = (stops,) if isinstance(stops, str) else tuple(stops)
    if len(stops) + len(_STOPS) <= _MOST_STOPS:
        kept["stop"] = [*stops, *_STOPS]
    return kept, notes


def correction(
    prompt: PromptedRequest, text: str, faults: Sequence[Fault], way: Constraint | None
) -> PromptedRequest:
    """The one further question about a call that could not be passed on."""
    complaints = dict.fromkeys(
        _complaint(fault, prompt.tools) for fault in faults[:_MOST_COMPLAINTS]
    )
    wrong = "\n".join(complaints) or _nothing_called(prompt.tools)
    # A tool that is not there may have no stand-in: then nobody presses for one.
    must = prompt.rules.forced or not any(fault.kind == "unknown_tool" for fault in faults)
    way, answer = (way, _CORRECTED) if must else (None, _CORRECTED_OR_NONE)
    messages: tuple[Json, ...] = (
        *prompt.request.messages,
        {"role": "assistant", "content": text or "(nothing)"},
        {"role": "user", "content": f"{wrong}\n{answer}"},
    )
    held = way or Constraint()
    params = {**_briefly(prompt.request.params), **held.params}
    extra = {**prompt.request.extra, **held.extra}
    request = replace(prompt.request, messages=messages, params=params, extra=extra)
    rules = replace(prompt.rules, forced=must, bare=True)
    return prompt._replace(request=request, rules=rules, constrained=way is not None)


def _briefly(params: Mapping[str, Any]) -> dict[str, Any]:
    """For an answer that is a call and no more."""
    limits = {"max_tokens", "max_completion_tokens"}
    limit = min(limits & params.keys(), default="max_tokens")
    given = params.get(limit)
    tokens = min(given, _CORRECTION_TOKENS) if isinstance(given, int) else _CORRECTION_TOKENS
    return {**_without(params, frozenset(limits)), limit: tokens, "temperature": 0}


def _complaint(fault: Fault, tools: Sequence[Tool]) -> str:
    known = next((tool for tool in tools if tool.name == fault.name), None)
    if known is None:
        names = ", ".join(tool.name for tool in tools)
        return f"Your call is not valid: {fault.detail}. The tools are: {names}."
    return f"Your call of {known.name} is not valid: {fault.detail}. It is {signature(known)}."


def _nothing_called(tools: Sequence[Tool]) -> str:
    names = ", ".join(tool.name for tool in tools)
    return f"You wrote no tool call, but a call is required. The tools are: {names}."
