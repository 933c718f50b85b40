"""What a tool's schema says about a value, and the value as the schema wants it.

Schemas here hold no references: they are put in place once for every reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from adapters.protocol import Json
from adapters.shared.schema import mismatch
from adapters.shared.schema.mismatch import MOST_STEPS
from adapters.shared.schema.walk import StepBudget, branches, properties
from middleware.wrappers.emulation.judge import lenient_json as lenient
from middleware.wrappers.emulation.judge.names import plain, same
from middleware.wrappers.emulation.judge.strict_json import parse_strict

_DEPTH = 12
_NUMBER = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d+)?")
_BOOLEANS: Mapping[str, bool] = {"true": True, "false": False}
_ESCAPED = ('[{\\"', '{\\"')
_NAMES: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    type(None): "null",
    list: "array",
    dict: "object",
}


def types(schema: Any) -> frozenset[str]:
    """The JSON types a schema allows; empty: any."""
    if not isinstance(schema, dict):
        return frozenset()
    said = schema.get("type")
    if said is not None:
        names = said if isinstance(said, list) else [said]
        return frozenset(name for name in names if isinstance(name, str))
    if choices := choices_of(schema):
        every = [types(choice) for choice in choices]
        return frozenset().union(*every) if all(every) else frozenset()
    options = [schema["const"]] if "const" in schema else branches(schema, "enum")
    return frozenset(_NAMES[type(option)] for option in options)


def choices_of(schema: Json) -> list[Any]:
    return branches(schema, "anyOf") or branches(schema, "oneOf")


def coerced(value: Any, schema: Any) -> Any:
    """The value as the schema wants it, where only its form was wrong; what is valid stays."""
    return _coerced(value, schema, StepBudget(MOST_STEPS), 0)


# Nested choices double the work with every level: what the budget does not reach stays as it is.
def _coerced(value: Any, schema: Any, budget: StepBudget, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > _DEPTH or not budget.spend():
        return value
    if isinstance(value, dict):
        value = _members(value, schema, budget, depth)
    elif isinstance(value, list):
        items = schema.get("items")
        value = [_coerced(item, items, budget, depth + 1) for item in value]
    if not mismatch(value, schema, budget):
        return value
    return _chosen(value, schema, budget, depth)


def _chosen(value: Any, schema: Json, budget: StepBudget, depth: int) -> Any:
    """The value as the first choice wants it that it can be made to fit."""
    for choice in choices_of(schema):
        candidate = _coerced(value, choice, budget, depth + 1)
        if not mismatch(candidate, choice, budget) and not budget.over:
            return candidate
    # Values that are no texts are meant as they are written.
    return _from_text(value, schema) if isinstance(value, str) else value


def _members(value: Json, schema: Json, budget: StepBudget, depth: int) -> Json:
    """Names in the schema's spelling; what `additionalProperties: false` forbids goes."""
    declared = properties(schema)
    spelled: dict[str, list[str]] = {}
    for name in declared:
        spelled.setdefault(plain(name), []).append(name)
    closed = schema.get("additionalProperties") is False
    members: Json = {}
    for said, member in value.items():
        meant = spelled.get(plain(said.rstrip("?")), [])  # a signature marks what is optional so
        taken = said in declared or len(meant) != 1 or meant[0] in (value.keys() | members.keys())
        name = said if taken else meant[0]
        if name in declared or not closed:
            members[name] = _coerced(member, declared.get(name), budget, depth + 1)
    return members


def _from_text(text: str, schema: Json) -> Any:
    """What a text says, where no text is wanted."""
    wanted, bare = types(schema), text.strip()
    words = [option for option in branches(schema, "enum") if isinstance(option, str)]
    if word := same(bare.strip("\"'`“”"), words):
        return word
    for kind, says in _SAYS.items():
        if kind in wanted and (found := says(bare)) is not None:
            return found
    return None if "null" in wanted and bare.lower() in ("null", "none") else text


def is_json(value: Any) -> bool:
    """Can JSON say it, with numbers that are finite wherever they are read?"""
    try:
        orjson.loads(json.dumps(value, allow_nan=False))
    except (ValueError, RecursionError):
        return False
    return True


def _integer(text: str) -> int | None:
    number = _number(text)
    return int(number) if number is not None and number == int(number) else None


def _number(text: str) -> int | float | None:
    if not _NUMBER.fullmatch(text):
        return None
    try:
        number: int | float = int(text)
    except ValueError:
        number = float(text)
    return number if is_json(number) else None


def _boolean(text: str) -> bool | None:
    return _BOOLEANS.get(text.lower())


def _structure(text: str) -> Any:
    value = value_of(text) if text[:1] in ("{", "[") else None
    return value if is_json(value) else None


_SAYS: Mapping[str, Callable[[str], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _structure,
    "object": _structure,
}


def value_of(text: str) -> Any:
    """JSON, perhaps with its quotes escaped once more; None where it is none."""
    if text.startswith(_ESCAPED):
        text = text.replace('\\"', '"').replace("\\\\", "\\")
    try:
        return parse_strict(text)
    except (ValueError, RecursionError):
        pass
    try:
        return lenient.read(text).value
    except (ValueError, RecursionError):
        return None
