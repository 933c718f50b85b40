"""Bounds on what clients want a model held to: parsers of grammars recurse, and some crash."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from adapters.errors import BadRequest
from adapters.protocol import Json

LONGEST, MOST_RULES, DEEPEST = 64 << 10, 1000, 64
# llama.cpp's and LiteLLM's, vLLM's, SGLang's names of it.
_FIELDS = ("grammar", "guided_grammar", "ebnf")
# What has no end goes on to the end: no parser gets any further either.
_TEXTS = re.compile(r'#[^\n]*+|"(?:[^"\\]++|\\.)*+"?|\[(?:[^\]\\]++|\\.)*+\]?', re.DOTALL)
_CLASSES = re.compile(r"\\.|\[(?:[^\]\\]++|\\.)*+\]?", re.DOTALL)
_STEPS: Mapping[str, int] = {"(": 1, ")": -1}


def check_grammars(data: Json) -> None:
    """Refuse a grammar, or a pattern of a form, that is larger or deeper than anybody writes."""
    for where, grammar in _grammars(data):
        _require_modest(where, grammar, _TEXTS)
    for where, schema in _forms(data):
        for pattern in _patterns(schema):
            _require_modest(where, pattern, _CLASSES)


def _grammars(data: Json) -> Iterator[tuple[str, str]]:
    held = [(name, data[name]) for name in _FIELDS if name in data]
    if "structured_outputs" in data:
        own = _member(data["structured_outputs"], "grammar")
        held.append(("structured_outputs.grammar", own))
    for position, tool in enumerate(data.get("tools") or ()):
        if "custom" in tool:
            form = _member(_member(tool["custom"], "format"), "grammar")
            where = f"tools[{position}].custom.format.grammar.definition"
            held.append((where, _member(form, "definition")))
    yield from ((where, text) for where, text in held if isinstance(text, str))


def _member(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, dict) else None


def _forms(data: Json) -> Iterator[tuple[str, Any]]:
    if form := data.get("response_format"):
        named = form.get("json_schema") or {}
        yield "response_format.json_schema.schema", named.get("schema")
    if "json_schema" in data:
        yield "json_schema", data["json_schema"]


def _patterns(schema: Any) -> Iterator[str]:
    left = [schema]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            if isinstance(node.get("pattern"), str):
                yield node["pattern"]
            left += node.values()
        elif isinstance(node, list):
            left += node


def _require_modest(where: str, text: str, literal: re.Pattern[str]) -> None:
    if len(text) > LONGEST or text.count("::=") > MOST_RULES:
        raise BadRequest(
            f"The grammar or pattern in '{where}' is too large. It may have {LONGEST} "
            f"characters and {MOST_RULES} rules: send a smaller one.",
            param=where,
        )
    if text.count("(") > DEEPEST and _depth(literal.sub("", text)) > DEEPEST:
        raise BadRequest(
            f"The grammar or pattern in '{where}' has more than {DEEPEST} groups within each "
            "other. Give the inner ones names of their own, or flatten it.",
            param=where,
        )


def _depth(text: str) -> int:
    steps = [_STEPS[one] for one in text if one in _STEPS]
    return max(accumulate(steps), default=0)
