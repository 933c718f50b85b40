"""The rules of a scripted model, as the config writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from adapters.shared.history import is_json_object

_KEYS = frozenset({"when", "say", "call", "think"})


class ScriptedCall(NamedTuple):
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Rule:
    """Answers a message that it fits: the first such rule counts."""

    when: re.Pattern[str]
    say: str = ""
    think: str = ""
    calls: tuple[ScriptedCall, ...] = ()


def read_rules(given: Any) -> tuple[Rule, ...]:
    """Read the `rules` of a model's config; raise `ValueError` that names what cannot be meant."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ValueError("rules must be a list of tables, each with 'when' and 'say' or 'call'")
    return tuple(_rule(rule, f"rules[{position}]") for position, rule in enumerate(given))


def _rule(given: Any, where: str) -> Rule:
    if not isinstance(given, Mapping):
        raise ValueError(f'{where} must be a table such as {{ when = "hello", say = "Hi." }}')
    for name, value in given.items():
        if name not in _KEYS:
            known = ", ".join(sorted(_KEYS))
            raise ValueError(f"{where}.{name} is no key of a rule; there are {known}")
        if name != "call" and not isinstance(value, str):
            raise ValueError(f"{where}.{name} must be text")
    if "say" not in given and "call" not in given:
        raise ValueError(f"{where} answers nothing: give it 'say' or 'call'")
    return Rule(
        when=_pattern(given.get("when", "")),
        say=given.get("say", ""),
        think=given.get("think", ""),
        calls=_calls(given.get("call", ()), f"{where}.call"),
    )


def _calls(given: Any, where: str) -> tuple[ScriptedCall, ...]:
    if isinstance(given, Mapping):
        return (_call(given, where),)
    if not isinstance(given, Sequence):
        raise ValueError(f"{where} must be a table with a 'name', or a list of such tables")
    return tuple(_call(call, where) for call in given)


def _pattern(text: str) -> re.Pattern[str]:
    """A regular expression, or plain text where it is none; no text fits everything."""
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error:
        return re.compile(re.escape(text), re.IGNORECASE)


def _call(given: Any, where: str) -> ScriptedCall:
    name = given.get("name") if isinstance(given, Mapping) else None
    if not isinstance(name, str) or not name:
        raise ValueError(f'{where} must be like {{ name = "a_tool", arguments = {{ … }} }}')
    arguments = given.get("arguments", {})
    if isinstance(arguments, Mapping):
        arguments = orjson.dumps(arguments).decode()
    if not isinstance(arguments, str) or not is_json_object(arguments):
        raise ValueError(f"{where}.arguments must be a table, or the text of a JSON object")
    return ScriptedCall(name, arguments)
