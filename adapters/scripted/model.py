"""What a scripted model says to a request, and how it streams it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from adapters.compatible import one_choice
from adapters.kind import Settings
from adapters.leaf import Leaf
from adapters.options import ANYTHING, option
from adapters.protocol import (
    ChatRequest,
    Event,
    Events,
    Finish,
    FinishReason,
    Opened,
    Planned,
    ReasoningDelta,
    TextDelta,
    Upstream,
    Usage,
)
from adapters.receipts import Receipt
from adapters.scripted.rules import Rule, ScriptedCall, read_rules
from adapters.scripted.values import Words, fill, read_words, single_text
from adapters.shared.fields import Fields, unsupported
from adapters.shared.history import rounds, text_of
from adapters.shared.toolbox import Tool, Toolbox, alias, toolbox

_PIECES = re.compile(r"\s*\S{1,12}|\s+")
"""Stand for tokens: what it counts and what it streams."""
_WORDS = re.compile(r"[a-z]{3,}|[\u4e00-\u9fff]")
_ARGUMENTS_PIECE, _QUOTED = 8, 120
_OBEYED = (
    *("parallel_tool_calls", "reasoning_effort", "response_format"),
    *("stream_options", "top_logprobs"),
)
Batch = tuple[Event, ...]
_HOW_TO = (
    "This is a scripted model: it answers by rules and knows nothing. To talk to a real one, add "
    "an upstream and a model to config.toml, and ask for that model by its name."
)


class Saying(NamedTuple):
    thought: str
    text: str
    calls: tuple[ScriptedCall, ...] = ()


class AnswerLimits(NamedTuple):
    tokens: int | None
    stops: tuple[str, ...]


def answer(request: ChatRequest, box: Toolbox, rules: tuple[Rule, ...]) -> Saying:
    """Decide what to say: the first rule that fits the last message, else the built-in manners."""
    last = request.messages[-1]
    text = text_of(last.get("content"))
    rule = next((rule for rule in rules if rule.when.search(text)), None)
    words = read_words(_asked(request))
    thought = rule.think if rule else _thought(request, box)
    calls = _calls(box, rule, words, last["role"])
    if calls:
        return Saying(thought, rule.say if rule else "", calls)
    return Saying(thought, (rule.say if rule else "") or _text(request, rule, words))


def _asked(request: ChatRequest) -> str:
    asked = [message for message in request.messages if message["role"] == "user"]
    return text_of(asked[-1].get("content")) if asked else ""


def _thought(request: ChatRequest, box: Toolbox) -> str:
    if request.params.get("reasoning_effort") in (None, "none"):
        return ""
    last = request.messages[-1]["role"]
    return (
        f"Scripted thought: {len(box.tools)} tools are offered; the last message is a {last} one."
    )


def _calls(box: Toolbox, rule: Rule | None, words: Words, last: str) -> tuple[ScriptedCall, ...]:
    tools = box.offered
    names = {tool.name for tool in tools}
    wanted = tuple(call for call in (rule.calls if rule else ()) if alias(call.name) in names)
    if wanted or not tools:
        return wanted
    if box.mode == "auto" and (rule or last != "user"):
        return ()
    return _built_in_calls(_most_fitting(tools, words.text), words, box.parallel)


def _most_fitting(tools: tuple[Tool, ...], text: str) -> Tool:
    """The tool that shares most words with the question; the first one of equals."""
    said = text.lower()
    return max(tools, key=lambda tool: _shared(f"{tool.name} {tool.description}", said))


def _shared(text: str, said: str) -> int:
    return sum(word in said for word in set(_WORDS.findall(text.lower())))


def _built_in_calls(tool: Tool, words: Words, parallel: bool) -> tuple[ScriptedCall, ...]:
    each = [words]
    if parallel and len(words.things) > 1 and single_text(tool.parameters):
        each = [Words(words.text, (thing,)) for thing in words.things]
    filled = [fill(tool.parameters, one) for one in each]
    return tuple(
        ScriptedCall(tool.name, orjson.dumps(value if isinstance(value, dict) else {}).decode())
        for value in filled
    )


def _text(request: ChatRequest, rule: Rule | None, words: Words) -> str:
    wanted = request.params.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return orjson.dumps(fill(wanted["json_schema"].get("schema") or {}, words)).decode()
    text = _sentence(request, rule, words)
    if wanted.get("type") == "json_object":
        return orjson.dumps({"scripted": True, "answer": text}).decode()
    return text


def _sentence(request: ChatRequest, rule: Rule | None, words: Words) -> str:
    if rule and rule.calls:
        names = ", ".join(f"'{call.name}'" for call in rule.calls)
        return f"A rule of this scripted model calls {names}, which the request does not offer."
    results = _results(request)
    if results:
        return f"Scripted answer: {'; '.join(results)}."
    said = words.text if len(words.text) <= _QUOTED else words.text[:_QUOTED] + "…"
    return f'{_HOW_TO} You said: "{said}"' if said else _HOW_TO


def _results(request: ChatRequest) -> list[str]:
    """The results at the end of the conversation, in the order of their calls."""
    names, said = rounds(request.messages), []
    for message in reversed(request.messages):
        if message["role"] != "tool":
            break
        said.append(f"{names[message['tool_call_id']]} said {text_of(message.get('content'))}")
    return said[::-1]


def _read_fields(request: ChatRequest, box: Toolbox) -> tuple[AnswerLimits, Receipt]:
    fields = Fields({**request.extra, **request.params})
    fields.notes.add_all(box.receipt)
    one_choice(fields)
    fields.refuse("audio", "A scripted model answers in text. Leave 'audio' out.")
    if fields.take("logprobs"):
        raise unsupported(
            "logprobs", "A scripted model has no probabilities. Leave 'logprobs' out."
        )
    for name in _OBEYED:
        fields.take(name)
    newer, older = fields.take("max_completion_tokens"), fields.take("max_tokens")
    stop = fields.take("stop") or ()
    limits = AnswerLimits(newer or older, (stop,) if isinstance(stop, str) else tuple(stop))
    return limits, fields.receipt("a scripted model")


def _cut(text: str, limits: AnswerLimits) -> tuple[list[str], FinishReason]:
    """The pieces of a text up to its first stop sequence and its longest length."""
    ends = [end for stop in limits.stops if (end := text.find(stop)) >= 0]
    pieces = _PIECES.findall(text[: min(ends)] if ends else text)
    if limits.tokens is not None and len(pieces) > limits.tokens:
        return pieces[: limits.tokens], "length"
    return pieces, "stop"


def say(
    saying: Saying, request: ChatRequest, box: Toolbox, limits: AnswerLimits
) -> Iterator[Batch]:
    """One batch of events for every piece, as a model that is streamed would."""
    thoughts = _PIECES.findall(saying.thought)
    pieces, reason = _cut(saying.text, limits)
    yield from ((ReasoningDelta(piece),) for piece in thoughts)
    yield from ((TextDelta(piece),) for piece in pieces)
    calls, counted = box.calls(request.call.id), len(thoughts) + len(pieces)
    for key, call in enumerate(saying.calls):
        yield tuple(calls.start(key, None, alias(call.name)))
        for start in range(0, len(call.arguments), _ARGUMENTS_PIECE):
            yield tuple(calls.delta(key, call.arguments[start : start + _ARGUMENTS_PIECE]))
            counted += 1
    heard = sum(len(_PIECES.findall(text_of(said.get("content")))) for said in request.messages)
    finish = Finish("tool_calls" if calls else reason, Usage(heard, counted), "scripted")
    yield (*calls.close(), finish)


@dataclass(frozen=True, slots=True)
class Scripted(Leaf):
    name: str
    rules: tuple[Rule, ...] = ()

    async def stream(self, request: ChatRequest) -> Events:
        box = toolbox(request)
        limits, receipt = _read_fields(request, box)
        saying = answer(request, box, self.rules)
        upstream = Upstream(self.name, model="scripted", fingerprint="scripted")
        opened: Batch = (Opened(receipt, upstream),)
        for batch in say(saying, request, box, limits):
            if batch:
                yield opened + batch
                opened = ()

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        box = toolbox(request)
        _, receipt = _read_fields(request, box)
        saying = answer(request, box, self.rules)
        calls = [{"name": call.name, "arguments": call.arguments} for call in saying.calls]
        body = {"scripted": True, "model": request.model, "text": saying.text, "calls": calls}
        return (Planned(self.name, "scripted:", body, receipt),)


@dataclass(frozen=True, slots=True)
class Options:
    rules: Any = option("What it answers to what", ANYTHING, ())


def connect(settings: Settings[Options]) -> Scripted:
    """Read its rules; raise `ValueError` where they cannot be meant."""
    return Scripted(settings.link.name, read_rules(settings.options.rules))
