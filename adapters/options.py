"""What a config may say of one kind of upstream: fields that explain and check themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Environment = Mapping[str, str]
_SHOWN = 60
_Described = TypeVar("_Described", bound="DataclassInstance")


def option(text: str, allowed: Allowed, default: Any = None) -> Any:
    """A field of a kind's `Options` or abilities that the config may set: a sentence, and what it
    may be.
    """
    return field(default=default, metadata={"text": text, "allowed": allowed})


def options_of(described: type[DataclassInstance]) -> Mapping[str, Mapping[str, Any]]:
    """The fields the config may set, with what `option` says of each."""
    return {one.name: one.metadata for one in fields(described) if one.metadata}


def made(described: type[_Described], given: Mapping[str, Any]) -> _Described:
    """Make one of what is given for it; names that are not its own are another's."""
    return described(**_own(described, given))


def overridden(found: _Described, given: Mapping[str, Any]) -> _Described:
    """What was found, and what the config says in its place."""
    said = _own(type(found), given)
    return replace(found, **said) if said else found


def _own(described: type[DataclassInstance], given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: given[name] for name in options_of(described) if name in given} if given else {}


class Wrong(Exception):
    """A value that is not allowed, with a hint at what to write instead if there is one."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """A kind of value."""

    words: str
    read: Callable[[Any, Environment], Any]
    """Returns the value as the gateway uses it, or raises `Wrong`."""
    secret: bool = False
    """What was found is not to be shown."""

    def found(self, value: Any) -> str:
        """Say what stands there, unless it may be a secret."""
        word = _TOML_WORDS.get(type(value), "a date or time")
        if word in ("a table", "true or false"):
            return str(value).lower() if word != "a table" else word
        if self.secret or (isinstance(value, str) and re.search(r"[@?]", value)):
            return f"{word} (not shown)"
        shown = repr(value)
        return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"


_TOML_WORDS: Mapping[type, str] = {
    bool: "true or false",
    dict: "a table",
    list: "a list",
    str: "text",
    int: "a number",
    float: "a number",
}


def plain(words: str, fits: Callable[[Any], bool]) -> Allowed:
    """A value used as it is."""

    def read(value: Any, _: Environment) -> Any:
        if not fits(value):
            raise Wrong
        return value

    return Allowed(words, read)


def listed(one: Allowed, words: str) -> Allowed:
    """A list of one kind."""

    def read(value: Any, environment: Environment) -> Any:
        if not isinstance(value, list):
            raise Wrong("write it in brackets: [ … ]")
        return tuple(one.read(item, environment) for item in value)

    return Allowed(words, read, secret=one.secret)


def table_of(one: Allowed, words: str) -> Allowed:
    """A table whose keys are free."""

    def read(value: Any, environment: Environment) -> Any:
        if not isinstance(value, dict):
            raise Wrong
        return {name: one.read(item, environment) for name, item in value.items()}

    return Allowed(words, read, secret=one.secret)


def whole(least: int, most: int | None = None) -> Allowed:
    words = f"a whole number from {least} to {most}" if most else f"a whole number, {least} or more"
    return plain(words, lambda value: type(value) is int and least <= value <= (most or value))


def choice(*words: str) -> Allowed:
    return plain("one of " + ", ".join(f'"{word}"' for word in words), words.__contains__)


def _path(value: Any, _: Environment) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Wrong
    if "\0" in value:
        raise Wrong("a name cannot hold the character \\u0000")
    try:
        return str(Path(value).expanduser())
    except RuntimeError as error:
        user = value.partition("/")[0]
        raise Wrong(f"there is no user '{user[1:]}' here: write the whole path") from error


def _thinking(value: Any, _: Environment) -> Any:
    if value is True:
        raise Wrong('say how: "manual" (with a budget), "adaptive" (with an effort) or "always"')
    if value is False:
        return "off"
    if value not in ("off", "manual", "adaptive", "always"):
        raise Wrong
    return value


def _thinks(value: Any, environment: Environment) -> Any:
    return _thinking("always" if value is True else value, environment)


FLAG = plain("true or false", lambda value: type(value) is bool)
TEXT = plain("text", lambda value: isinstance(value, str) and bool(value.strip()))
ANY_TEXT = plain("text", lambda value: isinstance(value, str))
TEXTS = listed(TEXT, "a list of texts")
TABLE = plain("a table", lambda value: isinstance(value, dict))
ANYTHING = plain("any value", lambda _: True)
THINKING = Allowed('false, "off", "manual", "adaptive" or "always"', _thinking)
THINKS = Allowed("true or false", _thinks)
"""Where it makes no difference how; the words of `THINKING` will do too."""
DURATION = plain(
    'a number of seconds, or text such as "10m"',
    lambda value: type(value) is int or (isinstance(value, str) and bool(value)),
)
PATH = Allowed("the path of a file", _path)
FOLDER = Allowed("the path of a folder", _path)
