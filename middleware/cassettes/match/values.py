"""JSON values compared by what they mean: numbers by value, line ends alike."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
Form: TypeAlias = "dict[str, JsonValue]"
_DEEPEST = 64
"""Levels of arguments; what is deeper stays text."""
_MOST_KEPT = 2048
"""Characters of arguments that are remembered."""


def normal(value: JsonValue, levels: int = -1) -> JsonValue:
    """The value as it is compared, all the way down; an error if it has more levels, or no end."""
    if isinstance(value, str):
        return normal_text(value)
    if isinstance(value, float):
        return int(value) if value == int(value) else value
    if not isinstance(value, dict | list):
        return value
    if not levels:
        raise ValueError("too deep")
    if isinstance(value, list):
        return [normal(member, levels - 1) for member in value]
    return {name: normal(member, levels - 1) for name, member in value.items()}


def normal_text(text: str) -> str:
    return text.replace("\r\n", "\n") if "\r" in text else text


def arguments_value(text: str) -> JsonValue:
    """What a call's arguments say; text that is no JSON, or JSON of a text, is itself.

    Clients send them again with every later ask: what is remembered is never changed.
    """
    return _remembered_value(text) if len(text) <= _MOST_KEPT else _value(text)


def _value(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
        return normal_text(text) if isinstance(value, str) else normal(value, _DEEPEST)
    except (ValueError, OverflowError, RecursionError):
        return normal_text(text)


_remembered_value = lru_cache(maxsize=1024)(_value)
