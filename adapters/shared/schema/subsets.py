"""A JSON Schema in the keywords a language has; the other constraints are put into words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.protocol import Json
from adapters.shared.schema.walk import (
    MOST_LEVELS,
    all_of,
    appended,
    branches,
    clipped,
    cut,
    shown,
    with_children,
    without,
)

# They constrain nothing, so a language without them loses nothing.
_ANNOTATIONS = frozenset(
    {
        *("$anchor", "$comment", "$defs", "$id", "$schema", "definitions"),
        *("deprecated", "description", "readOnly", "title", "writeOnly"),
    }
)


_FLAGS: Mapping[str, Mapping[bool, str]] = {
    "additionalProperties": {False: "no other properties", True: ""},
    "uniqueItems": {True: "unique items", False: ""},
}
_SAID_OTHERWISE = frozenset({"allOf", "const", "oneOf"})


def subset(schema: Json, keywords: frozenset[str]) -> tuple[Json, tuple[str, ...]]:
    """Keep only these keywords, at every depth; constraints among the rest go into descriptions.

    Also returns the names of what was moved there.
    """
    moved: dict[str, None] = {}
    return _reduced(schema, keywords, moved, 0), tuple(moved)


def _reduced(schema: Any, keywords: frozenset[str], moved: dict[str, None], depth: int) -> Json:
    if not isinstance(schema, dict):
        return {"description": "(must be left out)"} if schema is False else {}
    if depth > MOST_LEVELS:
        return cut(schema, "nested too deeply to be shown")
    words: list[str] = []
    if schema.keys() - keywords:
        schema = _rewritten(schema, keywords)
        words = _words(schema, keywords, moved)
        schema = without(schema, schema.keys() - keywords)
    kept = with_children(schema, lambda child: _reduced(child, keywords, moved, depth + 1))
    if words and "description" in keywords:
        kept["description"] = appended(kept.get("description"), ", ".join(words))
    return kept


def _rewritten(schema: Json, keywords: frozenset[str]) -> Json:
    """Say the same in keywords the language has."""
    missing = schema.keys() & (_SAID_OTHERWISE - keywords)
    if "allOf" in missing:
        parts = [one for one in branches(schema, "allOf") if isinstance(one, dict)]
        schema = all_of((*parts, without(schema, ("allOf",))))
    if "const" in missing and "enum" in keywords:
        schema = {**without(schema, ("const",)), "enum": [schema["const"]]}
    if "oneOf" in missing and "anyOf" in keywords - schema.keys():
        schema = {"anyOf" if name == "oneOf" else name: schema[name] for name in schema}
    return schema


def _words(schema: Json, keywords: frozenset[str], moved: dict[str, None]) -> list[str]:
    """Say the keywords the language does not have; `moved` learns their names."""
    said = {name: _in_words(name, value) for name, value in schema.items() if name not in keywords}
    told = {name: text for name, text in said.items() if text}
    moved.update(dict.fromkeys(told))
    return list(told.values())


def _in_words(keyword: str, value: Any) -> str:
    if keyword in _ANNOTATIONS or keyword.startswith("x-"):
        return ""
    if keyword in _FLAGS and isinstance(value, bool):
        return _FLAGS[keyword][value]
    return f"{keyword} {clipped(value) if isinstance(value, str) else shown(value)}"
