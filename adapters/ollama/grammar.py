"""What the server can hold a model to; of the rest some is a 500, some makes text that is no JSON.

Measured with Ollama 0.12.6: quotes and control characters in names and values go into its grammar
as they are, a pattern must be anchored and simple, and `not` and a bare `true` are errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from adapters.protocol import Json
from adapters.shared.schema.walk import MOST_LEVELS, with_children, without

_LENGTHS = ("maxItems", "maxLength", "minItems", "minLength")
_MOST_REPEATED = 1000
"""Later versions of its grammar refuse to count much further."""
_MEMBERS = ("properties", "required", "additionalProperties")
_DEFINITIONS = ("$defs", "definitions")
_UNESCAPED = re.compile(r'["\x00-\x1f\x7f]')
# Letters, classes of them, groups and repetitions: a dot or `[^…]` would let a quote through.
_PLAIN_PATTERN = re.compile(r"\^(?:[\w :/@-]|\[[\w -]+\]|\((?!\?)|[)|*+?]|\{[\d,]+\})*\$", re.ASCII)


def grammar_subset(schema: Json) -> tuple[Json, tuple[str, ...]]:
    """The schema without what the server cannot hold a model to, and the names of that."""
    lost: dict[str, None] = {}
    return _sayable(schema, lost, 0), tuple(lost)


def _sayable(schema: Any, lost: dict[str, None], depth: int) -> Json:
    if not isinstance(schema, dict) or depth > MOST_LEVELS:
        return {}
    known = _CAN_SAY.keys() & schema.keys()
    if unsayable := [name for name in known if not _CAN_SAY[name](schema[name])]:
        lost.update(dict.fromkeys(sorted(unsayable)))
        schema = _loosened(schema, unsayable)
    return _with_definitions(schema, lambda child: _sayable(child, lost, depth + 1))


def _with_definitions(schema: Json, change: Callable[[Any], Any]) -> Json:
    """Change all subschemas, also those that are only referred to: the server follows `$ref`."""
    changed = with_children(schema, change)
    for name in _DEFINITIONS:
        if isinstance(schema.get(name), dict):
            changed[name] = {key: change(one) for key, one in schema[name].items()}
    return changed


def _loosened(schema: Json, unsayable: list[str]) -> Json:
    """Without one member's name the others mean nothing; without its values a text is a text."""
    kept = without(schema, {*unsayable, *(_MEMBERS if "properties" in unsayable else ())})
    values = [*_listed(schema.get("enum")), schema.get("const", "")]
    if {"enum", "const"} & set(unsayable) and all(isinstance(value, str) for value in values):
        kept.setdefault("type", "string")
    return kept


def _is_plain(value: Any) -> bool:
    return not isinstance(value, str) or not _UNESCAPED.search(value)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_CAN_SAY: Mapping[str, Callable[[Any], bool]] = {
    "properties": lambda members: not isinstance(members, dict) or all(map(_is_plain, members)),
    "enum": lambda values: bool(values) and all(map(_is_plain, _listed(values))),
    "const": _is_plain,
    "pattern": lambda pattern: _PLAIN_PATTERN.fullmatch(str(pattern)) is not None,
    "not": lambda _: False,
    **dict.fromkeys(_LENGTHS, lambda length: type(length) is int and length <= _MOST_REPEATED),
}
