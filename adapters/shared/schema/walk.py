"""How to walk a JSON Schema that anybody may have written: references, depth, number of steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from adapters.protocol import Json

MOST_LEVELS = 64
DEFINITIONS = frozenset({"$ref", "$defs", "definitions"})
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items"})
_SINGLES = frozenset(
    {
        *("items", "additionalItems", "additionalProperties", "contains", "propertyNames"),
        *("if", "then", "else", "not", "unevaluatedItems", "unevaluatedProperties"),
    }
)
_HOLDERS = _MAPS | _LISTS | _SINGLES
SHOWN = 200


@dataclass(slots=True)
class StepBudget:
    """How much may be done, in steps of a few microseconds: for one schema, or for many."""

    steps: int

    @property
    def over(self) -> bool:
        return self.steps <= 0

    def spend(self, steps: int = 1) -> bool:
        """Count some; False once there were too many."""
        self.steps -= steps
        return self.steps >= 0

    def affords(self, steps: int) -> bool:
        return steps <= self.steps


@dataclass(slots=True)
class Walk:
    """One walk: a schema a few lines long can unfold into billions of nodes."""

    root: Any
    budget: StepBudget
    _targets: dict[str, Json | None] = field(default_factory=dict)

    def target(self, reference: Any) -> Json | None:
        """Find what a `$ref` inside this document points at."""
        if not isinstance(reference, str) or (reference != "#" and reference[:2] != "#/"):
            return None
        if reference not in self._targets:
            self._targets[reference] = self._found(reference)
        return self._targets[reference]

    def _found(self, reference: str) -> Json | None:
        node = self.root
        for part in unquote(reference[1:]).split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            node = node.get(name) if isinstance(node, dict) else _item(node, name)
        if node is True:
            return {}
        return node if isinstance(node, dict) else None


def _item(node: Any, name: str) -> Any:
    if not isinstance(node, list) or not name.isdecimal() or len(name) > 9:
        return None
    return node[int(name)] if int(name) < len(node) else None


def with_children(schema: Json, change: Callable[[Any], Any]) -> Json:
    """Copy a schema with its subschemas changed; data (enum, const, default) is left alone."""
    return {
        keyword: _changed(keyword, value, change) if keyword in _HOLDERS else value
        for keyword, value in schema.items()
    }


def _changed(keyword: str, value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict) and keyword in _MAPS:
        return {name: change(child) for name, child in value.items()}
    if isinstance(value, dict) and keyword in _SINGLES:
        return change(value)
    if isinstance(value, list) and keyword in _LISTS:
        return [change(child) for child in value]
    return value


def without(schema: Json, keywords: Container[str]) -> Json:
    return {name: value for name, value in schema.items() if name not in keywords}


def branches(schema: Json, keyword: str) -> list[Any]:
    found = schema.get(keyword)
    return found if isinstance(found, list) else []


def properties(schema: Json) -> Json:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def required(schema: Json) -> list[str]:
    return [name for name in branches(schema, "required") if isinstance(name, str)]


def all_of(schemas: Iterable[Json]) -> Json:
    """Merge schemas that all hold into one; where they differ, the later one's words stay."""
    merged: Json = {}
    members: Json = {}
    needed: dict[str, None] = {}
    for schema in schemas:
        merged.update(schema)
        needed.update(dict.fromkeys(required(schema)))
        for name, said in properties(schema).items():
            members[name] = _overlaid(members.get(name), said)
    if members:
        merged["properties"] = members
    if needed:
        merged["required"] = list(needed)
    return merged


def _overlaid(first: Any, second: Any) -> Any:
    return {**first, **second} if isinstance(first, dict) and isinstance(second, dict) else second


def cut(schema: Json, why: str) -> Json:
    """Make what stands where a schema goes on for too long, or for ever."""
    kind = schema.get("type")
    return {
        "type": kind if isinstance(kind, str) else "object",
        "description": appended(schema.get("description"), why),
    }


def appended(description: Any, words: str) -> str:
    return f"{description} ({words})" if description else f"({words})"


def shown(value: Any) -> str:
    """A value as JSON of a readable length; what is behind that is not even written."""
    text = ""
    for piece in _written(value):
        text += piece
        if len(text) > SHOWN:
            break
    return clipped(text)


def _written(value: Any) -> Iterator[str]:
    """JSON, piece by piece."""
    if isinstance(value, dict):
        members = (((_begun(name), ": "), member) for name, member in value.items())
        yield from _listed("{", members, "}")
    elif isinstance(value, list):
        yield from _listed("[", (((), member) for member in value), "]")
    else:
        yield _begun(value)


def _begun(value: Any) -> str:
    short = value[: SHOWN + 1] if isinstance(value, str) else value
    return json.dumps(short, ensure_ascii=False)


def _listed(
    opener: str, members: Iterable[tuple[tuple[str, ...], Any]], closer: str
) -> Iterator[str]:
    yield opener
    for position, (name, member) in enumerate(members):
        yield from (", ", *name) if position else name
        yield from _written(member)
    yield closer


def clipped(text: str) -> str:
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
