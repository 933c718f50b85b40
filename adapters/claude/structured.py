"""`response_format`: enforced where the model can be, asked for in words where it cannot."""

from __future__ import annotations

import orjson

from adapters.claude.capabilities import Capability
from adapters.claude.strict import strict_schema
from adapters.protocol import Json
from adapters.shared.fields import Fields

_FIELD = "response_format"
_JSON_ONLY = (
    "Answer with one valid JSON object and nothing else: no code fence, no text before or after it."
)


def encode_response_format(fields: Fields, capability: Capability) -> tuple[Json | None, str]:
    """`output_config.format`, and what the system prompt must say."""
    asked = fields.take(_FIELD) or {"type": "text"}
    if asked["type"] == "text":
        return None, ""
    schema = _schema(asked)
    if schema is None:
        text = "Claude has no JSON mode: it was asked for a JSON object in words"
        fields.note("json_object_instructed", _FIELD, text)
        return None, _JSON_ONLY
    reduced = strict_schema(schema) if capability.json_schema else None
    # A form without properties stands for any object, and held to it Claude would say `{}`.
    if reduced is None or not reduced.schema["properties"]:
        text = "this model cannot be held to this schema: it was asked in words"
        fields.note("json_schema_instructed", _FIELD, text)
        shown = orjson.dumps(schema).decode()
        return None, f"{_JSON_ONLY} It must fit this JSON Schema:\n{shown}"
    if reduced.lost:
        text = f"in words only: {', '.join(reduced.lost)}"
        fields.note("schema_in_words", f"{_FIELD}.json_schema.schema", text)
    return {"type": "json_schema", "schema": reduced.schema}, ""


def _schema(asked: Json) -> Json | None:
    named = asked.get("json_schema") or {}
    schema: Json | None = named.get("schema")
    if schema is None or not named.get("description"):
        return schema
    return {"description": named["description"], **schema}
