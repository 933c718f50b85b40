"""Holding an upstream to the form of a call, where it has a way to be held.

The constraint guarantees the form alone: the full schema is checked afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from adapters.protocol import Json
from adapters.shared.schema.walk import properties
from adapters.shared.toolbox import Tool
from middleware.wrappers.emulation.judge.schemas import choices_of
from middleware.wrappers.emulation.settings import Way

_DEPTH = 8
_NUMBER: Mapping[str, int] = {"minimum": -(10**15), "maximum": 10**15}
_ENDS: Mapping[str, Mapping[str, int]] = {
    "string": {"maxLength": 256},
    "array": {"maxItems": 16},
    "integer": _NUMBER,
    "number": _NUMBER,
}
# Small models fill free white space until their limit; without the usual one they err more.
_SPACED: Mapping[str, Any] = {
    "x-guidance": {
        "whitespace_flexible": False,
        "item_separator": ", ",
        "key_separator": ": ",
    }
}
# What constraint compilers take; the rest of a schema is checked on the answer.
_KEPT = frozenset((
    "type", "properties", "required", "items", "enum", "const", "anyOf", "minItems", "maxItems",
    "maxLength", "minLength", "minimum", "maximum", "additionalProperties", "description",
))  # fmt: skip


class Constraint(NamedTuple):
    """What a request gets so that the upstream keeps to the form."""

    params: Mapping[str, Any] = {}
    extra: Mapping[str, Any] = {}


def constraint_for(tools: Sequence[Tool], way: Way) -> Constraint | None:
    if not tools or way == "off":
        return None
    if way == "lark":
        return Constraint(extra={"grammar": _lark(tools)})
    schema = call_schema(tools)
    if way == "structured_outputs":  # vLLM from 0.12 on
        return Constraint(extra={"structured_outputs": {"json": schema}})
    if way == "json_schema":  # llama.cpp's server
        return Constraint(extra={"json_schema": schema})
    shape = {"name": "tool_call", "schema": schema}
    return Constraint({"response_format": {"type": "json_schema", "json_schema": shape}})


def call_schema(tools: Sequence[Tool]) -> Json:
    """One object that names a tool and gives its arguments."""
    calls = [
        {
            "type": "object",
            "properties": {
                "name": {"const": tool.name, "type": "string"},
                "arguments": bounded(tool.parameters),
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


def bounded(schema: Json) -> Json:
    """The schema without what constraints cannot take, and with an end to what has none."""
    return {"type": "object", **_bounded(schema, 0)}


def _bounded(schema: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > _DEPTH:
        return {}
    kept = {key: value for key, value in schema.items() if key in _KEPT}
    if choices := choices_of(schema):
        kept["anyOf"] = [_bounded(choice, depth + 1) for choice in choices]
    if "properties" in kept:
        members = properties(schema).items()
        kept["properties"] = {name: _bounded(member, depth + 1) for name, member in members}
        kept.setdefault("additionalProperties", False)
    if "items" in kept:
        kept["items"] = _bounded(kept["items"], depth + 1)
    return {**_ends(schema), **kept}


def _ends(schema: Json) -> Json:
    """Strings, arrays and numbers without an end let a model run to its limit."""
    if {"enum", "const"} & schema.keys():
        return {}
    said = schema.get("type")
    kinds = said if isinstance(said, list) else [said]
    ends = [end for kind, end in _ENDS.items() if kind in kinds]
    return {name: end[name] for end in ends for name in end}


def _lark(tools: Sequence[Tool]) -> str:
    """llguidance: the canonical block itself, with each tool's own arguments."""
    calls = " | ".join(f"c{position}" for position in range(len(tools)))
    rules = [f'start: "USE_TOOL\\nTOOL_NAME: " ({calls})']
    for position, tool in enumerate(tools):
        name = orjson.dumps(f"{tool.name}\nTOOL_ARGS: ").decode()
        schema = orjson.dumps({**_SPACED, **bounded(tool.parameters)}).decode()
        rules.append(f"c{position}: {name} a{position}\na{position}: %json {schema}")
    return "%llguidance {}\n" + "\n".join(rules)
