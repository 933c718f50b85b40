"""A JSON Schema without references: what each one means stands in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from adapters.protocol import Json
from adapters.shared.schema.walk import (
    DEFINITIONS,
    MOST_LEVELS,
    StepBudget,
    Walk,
    all_of,
    cut,
    with_children,
    without,
)

_MOST_STEPS = 20_000
_BYTES_A_STEP = 64
_WORDS = tuple(f'"{name}":'.encode() for name in sorted(DEFINITIONS))


def inline(schema: Json) -> Json:
    """Put what every `$ref` means in its place; where that would never end, say so in words."""
    return inline_all((schema,))[0]


def inline_all(schemas: Sequence[Json]) -> list[Json]:
    """The same for all schemas of a request: what one does not need is there for those behind."""
    inlined, left = [], _MOST_STEPS
    for position, schema in enumerate(schemas):
        share = StepBudget(left // (len(schemas) - position))
        left -= share.steps
        inlined.append(_Unfolding(schema, share).whole() if _mentions_any(schema) else schema)
        left += max(0, share.steps)
    return inlined


def _mentions_any(schema: Json) -> bool:
    """Most schemas have none, and then the walk is spared."""
    try:
        text = orjson.dumps(schema)
    except orjson.JSONEncodeError:
        return True  # nested too deeply for it
    return any(word in text for word in _WORDS)


class _Unfolding:
    """One schema while it unfolds. What the client wrote costs nothing, what is put in does."""

    def __init__(self, schema: Json, budget: StepBudget) -> None:
        self._schema = schema
        self._walk = Walk(schema, budget)
        self._weights: dict[str, int] = {}

    def whole(self) -> Json:
        unfolded: Json = self._of(self._schema, ("#",), 0)
        return unfolded

    def _of(self, schema: Any, within: tuple[str, ...], depth: int) -> Any:
        if not isinstance(schema, dict):
            return schema
        if len(within) > 1:
            self._walk.budget.spend()
        if depth > MOST_LEVELS:
            return cut(schema, "nested too deeply to be shown")
        if "$ref" in schema:
            return self._meant(schema, within, depth)
        beside = without(schema, DEFINITIONS)
        return with_children(beside, lambda child: self._of(child, within, depth + 1))

    def _meant(self, schema: Json, within: tuple[str, ...], depth: int) -> Json:
        reference, beside = schema["$ref"], without(schema, DEFINITIONS)
        target = self._walk.target(reference)
        if target is None:
            return cut(beside, f"unknown reference {reference}")
        why = f"the same shape as {_name(reference)}"
        again = reference in within
        steps = _weight(target.get("description")) if again else self._weight(reference, target)
        if not self._walk.budget.affords(steps):
            return cut({"type": target.get("type"), **beside}, why)
        self._walk.budget.spend(steps)
        merged = all_of((target, beside))
        if again:
            return cut(merged, why)
        unfolded: Json = self._of(merged, (*within, reference), depth + 1)
        return unfolded

    def _weight(self, reference: str, target: Json) -> int:
        if reference not in self._weights:
            self._weights[reference] = _weight(without(target, DEFINITIONS))
        return self._weights[reference]


def _weight(said: Any) -> int:
    """Steps of saying it once more: a description may be long."""
    try:
        return 1 + len(orjson.dumps(said)) // _BYTES_A_STEP
    except orjson.JSONEncodeError:
        return _MOST_STEPS + 1  # nested too deeply for it


def _name(reference: str) -> str:
    return reference.rpartition("/")[2].strip("#") or "the whole"
