"""Values checked against what their place takes: what is unknown or of a wrong type is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.protocol import Json

ANY = object
EACH = "*"
"""The key that stands for all others."""
_EXPECTED: Mapping[type, str] = {
    str: "text; numbers, days and words like `yes` stand in quotes",
    int: "a whole number, 0 or more",
    float: "a number with a point",
    bool: "true or false",
    dict: "a map",
    list: "a list",
}


class Misshapen(ValueError):
    """A value that its place does not take; says where, and what was expected."""


def checked(value: Any, schema: Any, at: str) -> Any:
    """The value without keys that say nothing; `at` says where it is: `turn.ask`.

    A schema is a type, a map of keys, a list with that of its items, or a tuple of texts. One item
    may stand for a list.
    """
    if isinstance(schema, Mapping):
        return _map(value, schema, at)
    if isinstance(schema, list):
        items = value if isinstance(value, list) else [value]
        return [checked(item, schema[0], f"{at}[{place}]") for place, item in enumerate(items)]
    if isinstance(schema, tuple):
        if value not in schema:
            raise wrong(at, value, f"one of {', '.join(schema)}")
    elif schema is not ANY and (type(value) is not schema or (schema is int and value < 0)):
        raise wrong(at, value, _EXPECTED[schema])
    return value


def wrong(at: str, value: object, expected: str) -> Misshapen:
    return Misshapen(f"{at}: {shown(value)}; expected {expected}")


def shown(value: object) -> str:
    """A value as a mistake names it."""
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    said = "nothing" if value is None else repr(value)
    return said if len(said) <= 60 else f"{said[:57]}…"


def _map(value: object, schema: Mapping[str, Any], at: str) -> Json:
    if not isinstance(value, dict):
        raise wrong(at, value, f"a map of {', '.join(schema)}")
    for name in value:
        if name not in schema and EACH not in schema:
            from middleware.config.hints import suggest  # late: it knows every kind

            said = f"{at}: unknown key '{name}'; expected {', '.join(schema)}."
            raise Misshapen(said + suggest(name, schema))
    return {
        name: checked(one, schema.get(name) or schema[EACH], f"{at}.{name}")
        for name, one in value.items()
        if one is not None
    }
