"""A JSON Schema whose root is one object, whatever it was combined from."""

from __future__ import annotations

import json
from typing import Any

from adapters.protocol import Json
from adapters.shared.schema.walk import (
    MOST_LEVELS,
    SHOWN,
    StepBudget,
    Walk,
    all_of,
    branches,
    clipped,
    properties,
    required,
    shown,
    without,
)

COMBINERS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
MOST_BRANCHES = 10_000


def object_root(schema: Json, budget: StepBudget | None = None) -> tuple[Json, tuple[str, ...]]:
    """Merge a root that is a `$ref`, `allOf`, `anyOf` or `oneOf` into one object.

    Also returns, in sentences, what one object cannot say. The schemas of one request may share a
    budget.
    """
    lost: list[str] = []
    walk = Walk(schema, StepBudget(MOST_BRANCHES) if budget is None else budget)
    root = _flattened(walk, schema, lost, 0)
    kind = root.pop("type", "object")
    if "object" not in (kind if isinstance(kind, list) else [kind]):
        lost.append(f"The value was to be of type {shown(kind)}.")
    return {"type": "object", **root, "properties": properties(root)}, tuple(lost)


def _flattened(walk: Walk, schema: Any, lost: list[str], depth: int) -> Json:
    """Merge what is combined at this level; always a copy."""
    if not isinstance(schema, dict) or depth > MOST_LEVELS or not walk.budget.spend(_size(schema)):
        return {}
    if not schema.keys() & COMBINERS:
        return schema.copy()
    parts = _each(walk, branches(schema, "allOf"), lost, depth)
    if "$ref" in schema:
        parts += _each(walk, [walk.target(schema["$ref"])], lost, depth)
    for keyword in ("anyOf", "oneOf"):
        choices = _each(walk, branches(schema, keyword), lost, depth)
        if choices := [one for one in choices if one and one.get("type") != "null"]:
            parts.append(_any_of(choices))
        if len(choices) > 1:
            lost.append(_in_words(keyword, choices))
    return all_of([*parts, without(schema, COMBINERS)])


def _size(schema: Json) -> int:
    """A reference to what is large may be in many branches."""
    return 1 + (len(schema) + len(properties(schema)) + len(branches(schema, "required"))) // 8


def _each(walk: Walk, schemas: list[Any], lost: list[str], depth: int) -> list[Json]:
    return [_flattened(walk, schema, lost, depth + 1) for schema in schemas]


def _any_of(choices: list[Json]) -> Json:
    """Merge objects of which one holds: all properties; required is what each of them requires."""
    found: dict[str, list[Any]] = {}
    for choice in choices:
        for name, said in properties(choice).items():
            found.setdefault(name, []).append(said)
    merged: Json = {
        "properties": {name: _one_of(said) for name, said in found.items()},
        "required": _common([required(choice) for choice in choices]),
        "type": _kind(choices),
    }
    return {name: value for name, value in merged.items() if value}


def _common(groups: list[list[str]]) -> list[str]:
    first, *others = map(dict.fromkeys, groups)
    return [name for name in first if all(name in other for other in others)]


def _kind(choices: list[Json]) -> Any:
    kinds = [choice["type"] for choice in choices if "type" in choice]
    return "object" if "object" in kinds else next(iter(kinds), None)


def _one_of(schemas: list[Any]) -> Any:
    """Say that one of these holds; a tag that has another value in each becomes an enum."""
    same = {id(schema): schema for schema in schemas}.values()  # of one reference, most of them
    distinct = list({_key(schema): schema for schema in same}.values())
    if len(distinct) == 1:
        return distinct[0]
    if not all(map(_values, distinct)):
        return {"anyOf": distinct}
    values = {_key(value): value for schema in distinct for value in _values(schema)}
    kinds = {_key(schema.get("type")): schema.get("type") for schema in distinct}
    kind = kinds.popitem()[1] if len(kinds) == 1 else None
    return {"type": kind, "enum": list(values.values())} if kind else {"enum": [*values.values()]}


def _key(value: Any) -> str:
    try:
        return json.dumps(value, sort_keys=True)
    except RecursionError:
        return str(id(value))


def _values(schema: Any) -> list[Any]:
    if not isinstance(schema, dict):
        return []
    return [schema["const"]] if "const" in schema else branches(schema, "enum")


def _in_words(keyword: str, choices: list[Json]) -> str:
    how = "exactly" if keyword == "oneOf" else "at least"
    return f"Give {how} one of these: {clipped(' | '.join(map(_choice_words, choices[:SHOWN])))}."


def _choice_words(choice: Json) -> str:
    names = required(choice) or list(properties(choice)) or [shown(choice.get("type", "any"))]
    description = choice.get("description")
    group = f"({', '.join(map(clipped, names[:SHOWN]))})"
    return f"{group} {clipped(description)}" if isinstance(description, str) else group
