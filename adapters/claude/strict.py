"""JSON Schema → the part of it that Claude compiles: for strict tools and structured output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from adapters.claude.capabilities import Capability
from adapters.protocol import Json
from adapters.shared.fields import Fields
from adapters.shared.schema import inline, object_root, subset
from adapters.shared.schema.walk import appended, branches, properties, required, with_children

_KEYWORDS = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
        *("anyOf", "format", "default", "title", "description"),
    }
)
_FORMATS = frozenset(
    {
        *("date-time", "time", "date", "duration", "email", "hostname", "uri"),
        *("ipv4", "ipv6", "uuid"),
    }
)

_FORM = "response_format"
_JSON_ONLY = (
    "Answer with one valid JSON object and nothing else: no code fence, no text before or after it."
)


@dataclass(frozen=True, slots=True)
class StrictSchema:
    """A schema as Claude compiles it, and what that costs."""

    schema: Json
    lost: tuple[str, ...]
    """Sentences and keywords that moved into descriptions."""
    optional: int = 0
    unions: int = 0


def strict_schema(schema: Json) -> StrictSchema | None:
    """Reduce a schema to what Claude can be held to; None if that would change what it allows."""
    root, sentences = object_root(inline(schema))
    reduced, keywords = subset(root, _KEYWORDS)
    if not _is_closed(reduced):
        return None
    if sentences:
        reduced["description"] = appended(reduced.get("description"), " ".join(sentences))
    closed: Json = _closed(reduced)
    optional, unions = _costs(closed)
    return StrictSchema(closed, (*sentences, *keywords), optional, unions)


def _is_closed(schema: Any) -> bool:
    """Neither "anything" nor an object of unknown properties can be compiled."""
    if not isinstance(schema, dict) or not schema.keys() & {"type", "enum", "const", "anyOf"}:
        return False
    # An object without a word on its properties stands for any object.
    if _is_object(schema) and schema.get("additionalProperties", "properties" not in schema):
        return False
    if schema.get("type") == "array" and "items" not in schema:
        return False
    return all(map(_is_closed, _children(schema)))


def _is_object(schema: Json) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def _children(schema: Json) -> list[Any]:
    items = [schema["items"]] if "items" in schema else []
    return [*properties(schema).values(), *items, *branches(schema, "anyOf")]


def _closed(schema: Any) -> Json:
    """Say of every object that it has no other properties, as Claude demands."""
    changed = with_children(schema, _closed)
    form = changed.get("format")
    if form is not None and form not in _FORMATS:
        del changed["format"]
        changed["description"] = appended(changed.get("description"), f"format {form}")
    if _is_object(changed):
        changed["additionalProperties"] = False
    return changed


def _costs(schema: Json) -> tuple[int, int]:
    """How many optional properties and how many unions there are."""
    optional = len(properties(schema).keys() - set(required(schema)))
    unions = int("anyOf" in schema or isinstance(schema.get("type"), list))
    for child in _children(schema):
        below = _costs(child)
        optional, unions = optional + below[0], unions + below[1]
    return optional, unions


def encode_response_format(fields: Fields, capability: Capability) -> tuple[Json | None, str]:
    """`output_config.format`, and what the system prompt must say."""
    asked = fields.take(_FORM)
    if not asked or asked["type"] == "text":
        return None, ""
    schema = _schema(asked)
    if schema is None:
        text = "Claude has no JSON mode: it was asked for a JSON object in words"
        fields.note("json_object_instructed", _FORM, text)
        return None, _JSON_ONLY
    reduced = strict_schema(schema) if capability.json_schema else None
    # A form without properties stands for any object, and held to it Claude would say `{}`.
    if reduced is None or not reduced.schema["properties"]:
        text = "this model cannot be held to this schema: it was asked in words"
        fields.note("json_schema_instructed", _FORM, text)
        shown = orjson.dumps(schema).decode()
        return None, f"{_JSON_ONLY} It must fit this JSON Schema:\n{shown}"
    if reduced.lost:
        text = f"in words only: {', '.join(reduced.lost)}"
        fields.note("schema_in_words", f"{_FORM}.json_schema.schema", text)
    return {"type": "json_schema", "schema": reduced.schema}, ""


def _schema(asked: Json) -> Json | None:
    named = asked.get("json_schema") or {}
    schema: Json | None = named.get("schema")
    if schema is None or not named.get("description"):
        return schema
    return {"description": named["description"], **schema}
