"""A JSON Schema in the keywords a language has; the other constraints are put into words."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from adapters.protocol import Json
from adapters.schema.walk import (
    MOST_LEVELS,
    all_of,
    appended,
    branches,
    clipped,
    cut,
    shown,
    with_children,
)

# They constrain nothing, so a language without them loses nothing.
_ANNOTATIONS = frozenset(
    {
        *("$anchor", "$comment", "$defs", "$id", "$schema", "definitions"),
        *("deprecated", "description", "readOnly", "title", "writeOnly"),
    }
)


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
    missing = schema.keys() - keywords
    if missing & _SAID_OTHERWISE:
        schema = _rewritten(schema, keywords, missing)
        missing = schema.keys() - keywords
    words = []
    kept = schema
    if missing:
        kept = {name: value for name, value in schema.items() if name in keywords}
        for keyword in [name for name in schema if name in missing]:
            if text := _in_words(keyword, schema[keyword]):
                moved[keyword] = None
                words.append(text)
    kept = with_children(kept, lambda child: _reduced(child, keywords, moved, depth + 1))
    if words and "description" in keywords:
        kept["description"] = appended(kept.get("description"), ", ".join(words))
    return kept


def _rewritten(schema: Json, keywords: frozenset[str], missing: Set[str]) -> Json:
    """Say the same in keywords the language has."""
    if "allOf" in missing:
        others = {name: value for name, value in schema.items() if name != "allOf"}
        parts = [branch for branch in branches(schema, "allOf") if isinstance(branch, dict)]
        schema = all_of((*parts, others))
    if "const" in missing and "enum" in keywords:
        others = {name: value for name, value in schema.items() if name != "const"}
        schema = {**others, "enum": [schema["const"]]}
    if "oneOf" in missing and "anyOf" in keywords and "anyOf" not in schema:
        schema = {"anyOf" if name == "oneOf" else name: schema[name] for name in schema}
    return schema


def _in_words(keyword: str, value: Any) -> str:
    if keyword in _ANNOTATIONS or keyword.startswith("x-"):
        return ""
    if keyword == "additionalProperties":
        if value is False:
            return "no other properties"
        return f"other properties {shown(value)}" if isinstance(value, dict) and value else ""
    if keyword == "uniqueItems":
        return "unique items" if value is True else ""
    return f"{keyword} {clipped(value) if isinstance(value, str) else shown(value)}"
