"""A JSON Schema without references: what each one means stands in its place."""

from __future__ import annotations

from typing import Any

import orjson

from adapters.protocol import Json
from adapters.schema.walk import (
    DEFINITIONS,
    MOST_LEVELS,
    Budget,
    Walk,
    all_of,
    cut,
    with_children,
    without,
)

_MOST_NODES = 20_000
_WORDS = tuple(f'"{name}":'.encode() for name in sorted(DEFINITIONS))


def inline(schema: Json) -> Json:
    """Put what every `$ref` means in its place; where that would never end, say so in words."""
    if not _mentions_any(schema):
        return schema
    inlined: Json = _inlined(Walk(schema, Budget(_MOST_NODES)), schema, ("#",), 0)
    return inlined


def _mentions_any(schema: Json) -> bool:
    """Most schemas have none, and then the walk is spared."""
    try:
        text = orjson.dumps(schema)
    except orjson.JSONEncodeError:
        return True  # nested too deeply for it
    return any(word in text for word in _WORDS)


def _inlined(walk: Walk, schema: Any, within: tuple[str, ...], depth: int) -> Any:
    if not isinstance(schema, dict):
        return schema
    walk.step()
    if depth > MOST_LEVELS:
        return cut(schema, "nested too deeply to be shown")
    beside = without(schema, DEFINITIONS)
    if "$ref" not in schema:
        return with_children(beside, lambda child: _inlined(walk, child, within, depth + 1))
    reference = schema["$ref"]
    target = walk.target(reference)
    if target is None:
        return cut(beside, f"unknown reference {reference}")
    merged = all_of((target, beside))
    if reference in within or walk.over:
        return cut(merged, f"the same shape as {_name(reference)}")
    return _inlined(walk, merged, (*within, reference), depth + 1)


def _name(reference: str) -> str:
    return reference.rpartition("/")[2].strip("#") or "the whole"
