"""A JSON Schema whose root is one object, whatever it was combined from."""

from __future__ import annotations

import json
from typing import Any

from adapters.protocol import Json
from adapters.schema.walk import (
    MOST_LEVELS,
    Walk,
    all_of,
    branches,
    clipped,
    properties,
    required,
    shown,
)

_COMBINERS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_MOST_BRANCHES = 1_000


def object_root(schema: Json) -> tuple[Json, tuple[str, ...]]:
    """Merge a root that is a `$ref`, `allOf`, `anyOf` or `oneOf` into one object.

    Also returns, in sentences, what one object cannot say.
    """
    lost: list[str] = []
    root = _flattened(Walk(schema, _MOST_BRANCHES), schema, lost, 0)
    kind = root.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        lost.append(f"The value was to be of type {shown(kind)}.")
    root = {"type": "object", **{name: root[name] for name in root if name != "type"}}
    if not isinstance(root.get("properties"), dict):
        root["properties"] = {}
    return root, tuple(lost)


def _flattened(walk: Walk, schema: Any, lost: list[str], depth: int) -> Json:
    if not isinstance(schema, dict) or depth > MOST_LEVELS or not walk.step():
        return {}
    parts = [_flattened(walk, branch, lost, depth + 1) for branch in branches(schema, "allOf")]
    if "$ref" in schema:
        parts.append(_flattened(walk, walk.target(schema["$ref"]), lost, depth + 1))
    for keyword in ("anyOf", "oneOf"):
        choices = [_flattened(walk, one, lost, depth + 1) for one in branches(schema, keyword)]
        choices = [choice for choice in choices if choice and choice.get("type") != "null"]
        if choices:
            parts.append(_any_of(choices))
        if len(choices) > 1:
            lost.append(_in_words(keyword, choices))
    parts.append({name: value for name, value in schema.items() if name not in _COMBINERS})
    return all_of(parts)


def _any_of(choices: list[Json]) -> Json:
    """Merge objects of which one holds: all properties; required is what each of them requires."""
    found: dict[str, list[Any]] = {}
    for choice in choices:
        for name, said in properties(choice).items():
            found.setdefault(name, []).append(said)
    needed = set.intersection(*(set(required(choice)) for choice in choices))
    kinds = [choice["type"] for choice in choices if "type" in choice]
    merged: Json = {"type": "object" if "object" in kinds else kinds[0]} if kinds else {}
    if found:
        merged["properties"] = {name: _one_of(said) for name, said in found.items()}
    if needed:
        merged["required"] = [name for name in required(choices[0]) if name in needed]
    return merged


def _one_of(schemas: list[Any]) -> Any:
    """Say that one of these holds; a tag that has another value in each becomes an enum."""
    distinct = list({_key(schema): schema for schema in schemas}.values())
    if len(distinct) == 1:
        return distinct[0]
    if all(_values(schema) for schema in distinct):
        values = {_key(value): value for schema in distinct for value in _values(schema)}
        kinds = {_key(schema.get("type")): schema.get("type") for schema in distinct}
        kind = {"type": kinds.popitem()[1]} if len(kinds) == 1 and "type" in distinct[0] else {}
        return {**kind, "enum": list(values.values())}
    return {"anyOf": distinct}


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
    return f"Give {how} one of these: {clipped(' | '.join(map(_choice_words, choices)))}."


def _choice_words(choice: Json) -> str:
    names = required(choice) or list(properties(choice)) or [shown(choice.get("type", "any"))]
    description = choice.get("description")
    group = f"({', '.join(names)})"
    return f"{group} {description}" if isinstance(description, str) else group
