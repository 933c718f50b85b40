"""Values for a JSON Schema, picked from a user's words where they fit: never random."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.protocol import Json
from adapters.shared.schema import inline
from adapters.shared.schema.walk import branches, properties, required

_MOST_ITEMS, _MOST_VALUES, _DEEPEST, _LONGEST = 8, 4, 16, 1000
_QUOTED = re.compile(r"[\"“„«「『]([^\"”“»」』]{1,80})[\"”“»」』]")
_AFTER_PREPOSITION = re.compile(
    r"\b(?:in|for|at|to|from|of|about)\s+((?:[A-Z][\w'’.-]*)(?:\s+[A-Z][\w'’.-]*)*)"
)
_CAPITALISED = re.compile(r"(?<![.!?]\s)(?<!^)\b([A-Z][\w'’-]+(?:\s+[A-Z][\w'’-]+)*)")
# Chinese has no spaces: the thing stands between the words of asking and the words of the matter.
_CHINESE_LEAD = re.compile(r"(?:请问|请|帮我|告诉我|我想知道|查询|查一下|查|搜索|今天|明天|现在)+")
_CHINESE_TAIL = re.compile(
    r"的|天气|气温|时间|怎么|如何|今天|明天|现在|是|有|[^\u4e00-\u9fff、，和与]"
)
_CHINESE_AND = re.compile(r"[、，和与]")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
# Properties that ask for the whole question rather than for a thing in it.
_WHOLE = re.compile(r"query|question|prompt|text|message|expression|code|input|q$", re.IGNORECASE)
_FORMATS: Mapping[str, str] = {
    "date": "2025-01-01",
    "date-time": "2025-01-01T12:00:00Z",
    "time": "12:00:00",
    "email": "someone@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


@dataclass(frozen=True, slots=True)
class Words:
    """What the user said, and what of it a value may be."""

    text: str
    things: tuple[str, ...]


def read_words(text: str) -> Words:
    """Find what a text is about: quoted, named after a preposition, or capitalised."""
    found = _QUOTED.findall(text)
    found += _AFTER_PREPOSITION.findall(text) + _CAPITALISED.findall(text)
    things = dict.fromkeys(thing.rstrip(".-") for thing in found or _chinese_things(text.strip()))
    return Words(text, tuple(things)[:_MOST_VALUES])


def _chinese_things(text: str) -> list[str]:
    lead = _CHINESE_LEAD.match(text)
    body = _CHINESE_TAIL.split(text[lead.end() :] if lead else text, maxsplit=1)[0]
    return [thing for thing in _CHINESE_AND.split(body) if thing]


def fill(schema: Json, words: Words) -> Any:
    """Make a value that fits a schema."""
    return _value(inline(schema), words, "", 0)


def single_text(schema: Json) -> bool:
    """Whether all it asks for is the name of one thing."""
    asked = _asked(schema)
    if len(asked) != 1 or _WHOLE.search(asked[0]):
        return False
    wanted = schema["properties"][asked[0]]
    return isinstance(wanted, dict) and _kind(wanted) == "string" and "enum" not in wanted


def _asked(schema: Json) -> list[str]:
    """The properties it cannot do without; all of them if it names none."""
    known, needed = properties(schema), required(schema)
    return [name for name in known if name in (needed or known)]


def _number_of(schema: Json, keyword: str, otherwise: float) -> float:
    value = schema.get(keyword)
    return value if isinstance(value, int | float) else otherwise


def _value(schema: Any, words: Words, name: str, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return None
    if "const" in schema:
        return schema["const"]
    members = schema.get("enum")
    if isinstance(members, list) and members:
        return _member(members, words.text)
    chosen = _chosen(schema)
    if chosen is not None:
        return _value(chosen, words, name, depth + 1)
    kind = _kind(schema)
    if kind == "object":
        return _object(schema, words, depth)
    if kind == "array":
        return _array(schema, words, name, depth)
    return _scalar(kind, schema, words, name)


def _chosen(schema: Json) -> Json | None:
    """The schema with the first of its alternatives that is not null."""
    for keyword in ("anyOf", "oneOf", "allOf"):
        choices = [one for one in branches(schema, keyword) if one != {"type": "null"}]
        if choices and isinstance(choices[0], dict):
            return {name: schema[name] for name in schema if name != keyword} | choices[0]
    return None


def _scalar(kind: str, schema: Json, words: Words, name: str) -> Any:
    if kind in ("number", "integer"):
        return _number(schema, words.text, kind == "integer")
    if kind == "boolean":
        return schema.get("default", True)
    return _text(schema, words, name) if kind == "string" else None


def _kind(schema: Json) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if isinstance(kind, str):
        return kind
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _member(members: list[Any], text: str) -> Any:
    """The one the user named, else the first."""
    said = text.lower()
    return next(
        (one for one in members if isinstance(one, str) and one.lower() in said), members[0]
    )


def _object(schema: Json, words: Words, depth: int) -> Json:
    return {
        name: _value(schema["properties"][name], words, name, depth + 1) for name in _asked(schema)
    }


def _array(schema: Json, words: Words, name: str, depth: int) -> list[Any]:
    items = schema.get("items")
    if not isinstance(items, dict):
        items = {"type": "string"}
    each = [Words(words.text, (thing,)) for thing in words.things]
    if not each or _kind(items) != "string":
        each = [words]
    most = int(_number_of(schema, "maxItems", _MOST_ITEMS))
    least = min(int(_number_of(schema, "minItems", 0)), _MOST_ITEMS)
    values = [_value(items, one, name, depth + 1) for one in each[:most]]
    return values + values[:1] * (least - len(values))


def _number(schema: Json, text: str, whole: bool) -> float:
    said = _NUMBER.search(text)
    value = float(said[0]) if said else _number_of(schema, "default", 1)
    value = max(value, _number_of(schema, "minimum", value))
    value = min(value, _number_of(schema, "maximum", value))
    return int(value) if whole or value == int(value) else value


def _text(schema: Json, words: Words, name: str) -> str:
    if _WHOLE.search(name) and words.text.strip():
        said = words.text.strip()
    elif str(schema.get("format")) in _FORMATS:
        said = _FORMATS[schema["format"]]
    elif words.things:
        said = words.things[0]
    else:
        said = (_WORD.findall(words.text) or ["scripted"])[-1]
    least = min(int(_number_of(schema, "minLength", 0)), _LONGEST)
    return said[: int(_number_of(schema, "maxLength", _LONGEST))].ljust(least, ".")
