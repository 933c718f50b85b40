"""The kinds of values a key may have: each says in words what it allows, and reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from middleware.config.shape import Secret

Environment = Mapping[str, str]
_VARIABLE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_SHELL = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
_SHOWN = 60


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


def _secret(value: Any, environment: Environment) -> Secret:
    if not isinstance(value, str):
        raise Wrong
    if not value.strip():
        raise Wrong("it is empty; set it, or remove the entry")
    if shell := _SHELL.fullmatch(value):
        raise Wrong(f'write "env:{shell[1]}"')
    secret = _from_environment(value, environment) if value.startswith("env:") else Secret(value)
    if not (secret.value.isascii() and secret.value.isprintable()):
        raise Wrong(f"{secret.variable or 'it'} holds characters no HTTP header can have")
    return secret


def _key(value: Any, environment: Environment) -> Secret:
    return Secret("", of_client=True) if value == "client" else _secret(value, environment)


def _from_environment(value: str, environment: Environment) -> Secret:
    if not (named := _VARIABLE.fullmatch(value)):
        raise Wrong('the name of an environment variable must follow "env:"')
    # Files and secret stores leave a line break at the end.
    value = environment.get(named[1], "").strip()
    return Secret(value, named[1], alike="" if value else _alike(named[1], environment))


def _alike(name: str, environment: Environment) -> str:
    from difflib import get_close_matches

    there = [one for one, value in environment.items() if value.strip()]
    return next(iter(get_close_matches(name, there, n=1, cutoff=0.85)), "")


def _proxy(value: Any, environment: Environment) -> Secret:
    secret = _secret(value, environment)
    if secret.value and not secret.value.startswith(("http://", "https://")):
        raise Wrong('its address must begin with "http://"')
    return secret


def _address(value: Any, _: Environment) -> str:
    if not isinstance(value, str) or re.search(r"\s", value):
        raise Wrong
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", value):
        here = re.match(r"(localhost|127\.|\[::1\])", value)
        raise Wrong(f'the scheme is missing: write "{"http" if here else "https"}://{value}"')
    parts = _parts(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Wrong
    if parts.username is not None:
        raise Wrong("a key does not belong in the address: use api_key or headers")
    if parts.query or parts.fragment:
        raise Wrong(f'leave out what follows the path: "{re.split("[?#]", value)[0]}"')
    return value.rstrip("/")


def _parts(value: str) -> SplitResult:
    try:
        parts = urlsplit(value)
        _ = parts.port  # reading it checks it
    except ValueError as error:
        raise Wrong("its host or port cannot be read") from error
    return parts


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


FLAG = plain("true or false", lambda value: type(value) is bool)
TEXT = plain("text", lambda value: isinstance(value, str) and bool(value.strip()))
ANY_TEXT = plain("text", lambda value: isinstance(value, str))
TEXTS = listed(TEXT, "a list of texts")
SECONDS = plain(
    "a number of seconds above 0", lambda value: type(value) in (int, float) and 0 < value < 1e9
)
TABLE = plain("a table", lambda value: isinstance(value, dict))
HOSTS = listed(
    plain(
        "a name or an address without http:// and path",
        lambda value: isinstance(value, str) and re.fullmatch(r"[^\s/@]+", value) is not None,
    ),
    "a list of names or addresses, without http:// and path",
)
ANYTHING = plain("any value", lambda _: True)
THINKING = Allowed('false, "off", "manual", "adaptive" or "always"', _thinking)
DURATION = plain(
    'a number of seconds, or text such as "10m"',
    lambda value: type(value) is int or (isinstance(value, str) and bool(value)),
)
SECRET = Allowed('text, or "env:NAME" for an environment variable', _secret, secret=True)
KEY = Allowed(
    'text, "env:NAME" for an environment variable, or "client" for the key each client sends',
    _key,
    secret=True,
)
SECRETS = listed(SECRET, 'a list of texts, or of "env:NAME" for environment variables')
HEADERS = table_of(SECRET, 'a table of texts, or of "env:NAME" for environment variables')
PROXY = Allowed('an http:// address, or "env:NAME"', _proxy, secret=True)
PATH = Allowed("the path of a file", _path)
ADDRESS = Allowed("an http:// or https:// address", _address)
