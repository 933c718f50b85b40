"""Two answers to one ask: are they the same decision?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from adapters.protocol import Json
from adapters.shared.history import text_of
from adapters.shared.schema import mismatch
from adapters.shared.schema.mismatch import MOST_STEPS
from adapters.shared.schema.walk import StepBudget
from middleware.cassettes.cassette import RecordedAnswer
from middleware.cassettes.diff.rules import (
    WORDS,
    DecisionChange,
    DiffRules,
    Word,
    differences,
    worst,
)
from middleware.cassettes.match import NOTHING
from middleware.cassettes.match.values import arguments_value

_OBJECT: Mapping[str, object] = {"type": "object"}
_MOST = 100
"""Differences of one turn that are told."""
_NEAR = 100
"""Places that two calls of a tool may be apart to be the same one."""


class Written(NamedTuple):
    """What a model wrote: arguments of a call, or an answer that was to be JSON."""

    name: str
    """The tool's, or `answer`."""
    value: Any
    """JSON; what is none is a text."""
    fault: str = ""
    """Why it does not fit its schema."""

    @property
    def is_text(self) -> bool:
        return isinstance(self.value, str)


class Verdict(NamedTuple):
    word: Word
    differences: Sequence[DecisionChange] = ()
    """The worst first."""


def verdict(ask: Json, old: RecordedAnswer, new: RecordedAnswer, rules: DiffRules) -> Verdict:
    """Name how far the new answer is from the old one; the worst part decides."""
    found = sorted(_changes(ask, old, new, rules), key=lambda one: -WORDS.index(one.word))
    return Verdict(worst(one.word for one in found), found[:_MOST])


def has_failed(answer: RecordedAnswer) -> bool:
    return answer.error is not None or answer.status >= 400


def _changes(
    ask: Json, old: RecordedAnswer, new: RecordedAnswer, rules: DiffRules
) -> Iterator[DecisionChange]:
    if has_failed(old) or has_failed(new):
        before, now = _failure(old), _failure(new)
        word: Word = "worded" if before[:1] == now[:1] else "different" if before else "broken"
        yield from _text("error", ": ".join(before), ": ".join(now), word)
    elif old.body or new.body:
        vectors, others = ((each.body or {}).get("data") for each in (old, new))
        yield from differences("answer", vectors, others, rules)
    else:
        yield from _decisions(ask, old, new, rules)


def _failure(answer: RecordedAnswer) -> Sequence[str]:
    """Status with code, and words; of what went well nothing."""
    error = answer.error or {}
    kind = f"{answer.status} {error.get('code') or ''}".strip()
    return (kind, str(error.get("message", ""))) if has_failed(answer) else ()


def _text(path: str, old: Any, new: Any, word: Word = "worded") -> Iterator[DecisionChange]:
    if (old or "") != (new or ""):
        yield DecisionChange(word, path, old or NOTHING, new or NOTHING)


def _decisions(
    ask: Json, old: RecordedAnswer, new: RecordedAnswer, rules: DiffRules
) -> Iterator[DecisionChange]:
    if old.finish_reason and new.finish_reason:  # a cassette written by hand may not say it
        yield from _text("finish_reason", old.finish_reason, new.finish_reason, "different")
    was, is_now = old.message or {}, new.message or {}
    yield from _text("reasoning", was.get("reasoning_content"), is_now.get("reasoning_content"))
    refusals = was.get("refusal"), is_now.get("refusal")
    yield from _text("refusal", *refusals, "worded" if all(refusals) else "different")
    (before, calls), (after, new_calls) = _decision(ask, was), _decision(ask, is_now)
    if before.is_text and after.is_text:
        yield from _text("answer", before.value, after.value)
    else:
        yield from _compared(before, after, rules)
    yield from _calls(calls, new_calls, rules)


def _calls(
    old: Sequence[Written], new: Sequence[Written], rules: DiffRules
) -> Iterator[DecisionChange]:
    """Each beside the one of its tool that it is nearest to: their order means nothing."""
    pairs = [
        (list(_compared(was, call, rules)), at, beside)
        for at, was in enumerate(old)
        for beside, call in enumerate(new[max(0, at - _NEAR) : at + _NEAR], max(0, at - _NEAR))
        if was.name == call.name
    ]
    gone, come = dict(enumerate(old)), dict(enumerate(new))
    for found, at, beside in sorted(pairs, key=lambda pair: len(pair[0])):
        if at in gone and beside in come:
            del gone[at], come[beside]
            yield from found
    for call in gone.values():
        yield DecisionChange("different", call.name, recorded=call.value)
    for call in come.values():
        word: Word = "broken" if call.fault else "different"
        yield DecisionChange(word, call.name, now=call.value, why=call.fault)


def _compared(old: Written, new: Written, rules: DiffRules) -> Iterator[DecisionChange]:
    yield from differences(new.name, old.value, new.value, rules)
    if new.fault and not old.fault:
        yield DecisionChange("broken", new.name, old.value, new.value, new.fault)


def _decision(ask: Json, message: Json) -> tuple[Written, Sequence[Written]]:
    """The answer, and the calls."""
    schemas, budget = _schemas(ask), StepBudget(MOST_STEPS)
    calls = [_call(call, schemas, budget) for call in _called(message)]
    text = text_of(message.get("content"))
    if "answer" in schemas and not calls and not message.get("refusal"):
        return _written("answer", text, (schemas["answer"],), budget), calls
    return Written("answer", text), calls


def _schemas(ask: Json) -> Mapping[str, object]:
    """Of structured output, and of the arguments of each tool."""
    functions = [tool.get("function") or {} for tool in ask.get("tools") or ()]
    functions += ask.get("functions") or ()
    schemas = {f"tool {each.get('name')}": each.get("parameters") for each in functions}
    match ask.get("response_format"):
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            schemas["answer"] = schema
        case {"type": "json_schema" | "json_object"}:
            schemas["answer"] = _OBJECT
    return schemas


def _called(message: Json) -> Iterator[Json]:
    yield from message.get("tool_calls") or ()
    if legacy := message.get("function_call"):
        yield {"function": legacy}


def _call(call: Json, schemas: Mapping[str, object], budget: StepBudget) -> Written:
    said = call.get(call.get("type") or "function") or {}
    name = str(said.get("name"))
    if "input" in said:  # a custom tool's: free text, or a grammar's
        return Written(name, said["input"])
    arguments = (said.get("arguments") or "").strip() or "{}"
    return _written(name, arguments, (_OBJECT, schemas.get(f"tool {name}")), budget)


def _written(name: str, text: str, schemas: Sequence[object], budget: StepBudget) -> Written:
    value = arguments_value(text)
    if isinstance(value, str):
        return Written(name, text, f"{name}: is not JSON")
    faults = filter(None, (mismatch(value, schema, budget) for schema in schemas))
    fault = next(faults, "")
    return Written(name, value, fault and f"{name}{fault[1:]}")
