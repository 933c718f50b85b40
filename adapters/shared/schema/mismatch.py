"""Does a value fit a JSON Schema; if not, where and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from adapters.protocol import Json
from adapters.shared.schema.pattern import ways
from adapters.shared.schema.walk import (
    MOST_LEVELS,
    StepBudget,
    Walk,
    branches,
    clipped,
    properties,
    required,
    shown,
)

MOST_STEPS = 20_000
_WAYS_A_STEP = 50
_LONGEST_PATH = 200


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and value == value // 1,
    "number": _is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
# Keyword → what it measures, whether the figure is within the limit, and in words.
_LIMITS: Mapping[str, tuple[type, Callable[[Any, Any], bool], str]] = {
    "minimum": (float, lambda figure, limit: figure >= limit, "must be at least {}"),
    "maximum": (float, lambda figure, limit: figure <= limit, "must be at most {}"),
    "exclusiveMinimum": (float, lambda figure, limit: figure > limit, "must be more than {}"),
    "exclusiveMaximum": (float, lambda figure, limit: figure < limit, "must be less than {}"),
    "minLength": (str, lambda figure, limit: figure >= limit, "needs at least {} characters"),
    "maxLength": (str, lambda figure, limit: figure <= limit, "has more than {} characters"),
    "minItems": (list, lambda figure, limit: figure >= limit, "needs at least {} items"),
    "maxItems": (list, lambda figure, limit: figure <= limit, "has more than {} items"),
    "minProperties": (dict, lambda figure, limit: figure >= limit, "needs at least {} properties"),
    "maxProperties": (dict, lambda figure, limit: figure <= limit, "has more than {} properties"),
}


def mismatch(value: Any, schema: Any, budget: StepBudget | None = None) -> str | None:
    """Say where and why a value does not fit, or None; what cannot be checked fits.

    Who checks many values of one sender gives all of them one budget.
    """
    walk = Walk(schema, StepBudget(MOST_STEPS) if budget is None else budget)
    return next(_faults(walk, value, schema, ("$", 0)), None)


def mismatches(value: Any, schema: Any, most: int) -> list[str]:
    """All places that do not fit, up to so many."""
    walk = Walk(schema, StepBudget(MOST_STEPS))
    return [*islice(_faults(walk, value, schema, ("$", 0)), most)]


_At = tuple[str, int]
"""Path of a value, and how deep the check of it is."""


def _faults(walk: Walk, value: Any, schema: Any, at: _At) -> Iterator[str]:
    path, depth = at
    if schema is False:
        yield f"{path}: must be left out"
    if not isinstance(schema, dict) or depth > MOST_LEVELS or not walk.budget.spend(_size(schema)):
        return
    if (kinds := schema.get("type")) and not _is_of(value, kinds):
        yield f"{path}: must be of type {shown(kinds)}, is {shown(value)}"
        return
    inside = (path, depth + 1)
    yield from _value_faults(value, schema, path)
    yield from _limit_faults(value, schema, path)
    yield from _pattern_faults(walk, value, schema, path)
    yield from _combined_faults(walk, value, schema, inside)
    yield from _denied_faults(walk, value, schema, inside)
    if isinstance(value, dict):
        yield from _object_faults(walk, value, schema, inside)
    elif isinstance(value, list):
        yield from _list_faults(walk, value, schema, inside)


def _value_faults(value: Any, schema: Json, path: str) -> Iterator[str]:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and not any(_same(value, one) for one in values):
        yield f"{path}: must be one of {shown(values)}, is {shown(value)}"


def _is_of(value: Any, kinds: Any) -> bool:
    names = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(names, list):
        return True
    known = [_KINDS[name] for name in names if isinstance(name, str) and name in _KINDS]
    return len(known) < len(names) or any(fits(value) for fits in known)


def _same(first: Any, second: Any) -> bool:
    """Compare as JSON does, where true is not 1."""
    return isinstance(first, bool) == isinstance(second, bool) and bool(first == second)


def _limit_faults(value: Any, schema: Json, path: str) -> Iterator[str]:
    kind = float if _is_number(value) else type(value)
    figure = len(value) if isinstance(value, str | list | dict) else value
    for keyword in filter(_LIMITS.__contains__, schema):
        measured, within, words = _LIMITS[keyword]
        limit = schema[keyword]
        if measured is kind and _is_number(limit) and not within(figure, limit):
            yield f"{path}: {words.format(limit)}, is {shown(value)}"


def _pattern_faults(walk: Walk, value: Any, schema: Json, path: str) -> Iterator[str]:
    pattern = schema.get("pattern")
    if isinstance(value, str) and isinstance(pattern, str) and _misses(walk, pattern, value):
        yield f"{path}: does not match {clipped(pattern)}, is {shown(value)}"


def _misses(walk: Walk, pattern: str, text: str) -> bool:
    """Whether a pattern certainly does not match; one that could run for long is not tried."""
    tries = ways(pattern, len(text))
    if tries is None:
        return False
    steps = len(pattern) + (tries + len(text)) // _WAYS_A_STEP
    if not walk.budget.affords(steps):
        return False
    walk.budget.spend(steps)
    try:
        return re.search(pattern, text) is None
    except (re.error, OverflowError, RecursionError):
        return False


def _combined_faults(walk: Walk, value: Any, schema: Json, at: _At) -> Iterator[str]:
    if "$ref" in schema:
        yield from _faults(walk, value, walk.target(schema["$ref"]), at)
    for branch in branches(schema, "allOf"):
        yield from _faults(walk, value, branch, at)
    for keyword in ("anyOf", "oneOf"):
        choices = branches(schema, keyword)
        faults = [fault for one in choices if (fault := _fault(walk, value, one, at))]
        if faults and len(faults) == len(choices):
            yield f"{at[0]}: fits none of {keyword} ({faults[0]})"


def _denied_faults(walk: Walk, value: Any, schema: Json, at: _At) -> Iterator[str]:
    """What must not fit; a check that was cut short is no proof that it does."""
    choices = branches(schema, "oneOf")
    fitting = [one for one in choices if not _fault(walk, value, one, at)]
    if len(fitting) > 1 and not walk.budget.over:
        yield f"{at[0]}: fits {len(fitting)} of oneOf, must fit exactly one"
    refused = schema.get("not", False)
    if refused is not False and not _fault(walk, value, refused, at) and not walk.budget.over:
        yield f"{at[0]}: must not fit {shown(refused)}"


def _fault(walk: Walk, value: Any, schema: Any, at: _At) -> str | None:
    return next(_faults(walk, value, schema, at), None)


def _object_faults(walk: Walk, value: Json, schema: Json, at: _At) -> Iterator[str]:
    path, depth = at
    for name in required(schema):
        if name not in value:
            yield f"{path}: required property '{clipped(name)}' is missing"
    known = properties(schema)
    # Names that fit a pattern are known as well, and patterns are not tried.
    others = True if "patternProperties" in schema else schema.get("additionalProperties", True)
    for name, member in value.items():
        if not walk.budget.spend():
            return
        if name not in known and others is False:
            yield f"{path}: property '{clipped(name)}' is not known"
        else:
            yield from _faults(walk, member, known.get(name, others), _into(path, name, depth))


def _list_faults(walk: Walk, value: list[Any], schema: Json, at: _At) -> Iterator[str]:
    path, depth = at
    first = branches(schema, "prefixItems")
    rest = schema.get("items")
    for position, member in enumerate(value):
        if not walk.budget.spend():
            return
        expected = first[position] if position < len(first) else rest
        yield from _faults(walk, member, expected, (f"{path}[{position}]", depth))


def _into(path: str, name: str, depth: int) -> _At:
    """Names may have megabytes."""
    return f"{path}.{clipped(name)}" if len(path) < _LONGEST_PATH else path, depth


def _size(schema: Json) -> int:
    """What reading one node takes: its lists may be as long as a request."""
    lists = (schema[name] for name in _LISTS if isinstance(schema.get(name), list))
    return 1 + len(schema) // 8 + sum(map(len, lists))


_LISTS = ("enum", "required", "anyOf", "oneOf", "allOf", "type")
