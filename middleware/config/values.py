"""Values only the gateway's own keys have: secrets, addresses, names."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

from adapters.options import Allowed, Environment, Wrong, choice, listed, plain, table_of
from middleware.config.shape import Period, Secret, SpendingLimit

_VARIABLE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_BUDGET = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) USD/(hour|day|week|month|total)")
_PRICED = ("input", "output", "cached", "cache_write", "reasoning")
_SHELL = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")


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


def _own_secret(value: Any, environment: Environment) -> Secret:
    """One that the gateway itself needs: without it something else would be made up."""
    secret = _secret(value, environment)
    if not secret.value:
        raise Wrong(f"the environment variable {secret.variable} is not set")
    return secret


def _key(value: Any, environment: Environment) -> Secret:
    return Secret("", of_client=True) if value == "client" else _secret(value, environment)


def _keys(value: Any, environment: Environment) -> tuple[Secret, ...]:
    """One key, or several in rotation."""
    if not isinstance(value, list):
        return (_key(value, environment),)
    if not value:
        raise Wrong("the list is empty")
    if "client" in value:
        raise Wrong('"client" stands alone: a request has one key')
    keys = tuple(_secret(one, environment) for one in value)
    found = [key.value for key in keys if key.value]
    if len(set(found)) < len(found):
        raise Wrong("it has the same key twice")
    return keys


def _budget(value: Any, _: Environment) -> SpendingLimit:
    found = _BUDGET.fullmatch(value) if isinstance(value, str) else None
    if not found or not float(found[1]):
        raise Wrong
    return SpendingLimit(float(found[1]), cast(Period, found[2]))


def _numbers(value: Any, _: Environment) -> tuple[float, ...]:
    if not isinstance(value, list) or not all(map(_is_share, value)):
        raise Wrong
    if not any(value):
        raise Wrong("all of them are 0")
    return tuple(map(float, value))


def _price(value: Any, _: Environment) -> Any:
    if not isinstance(value, dict):
        raise Wrong
    for name, usd in value.items():
        if name not in _PRICED:
            raise Wrong(f"'{name}' is none of these")
        if not _is_share(usd):
            raise Wrong(f"{name} has to be a number, 0 or more")
    return value


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 1e9


def _store(*schemes: str) -> Allowed:
    """Where something is kept: a word, or an address of one of these schemes."""
    words = [f'"{one}…"' if one.endswith("/") else f'"{one}"' for one in (*schemes, "env:NAME")]
    read = partial(_kept_at, schemes=schemes)
    return Allowed(", ".join(words), read, secret=True)


def _kept_at(value: Any, environment: Environment, schemes: tuple[str, ...]) -> str:
    if isinstance(value, str) and value.startswith("env:"):  # an address may hold a password
        value = _own_secret(value, environment).value
    if not isinstance(value, str) or not value.startswith(schemes) or re.search(r"\s", value):
        raise Wrong
    if value == "sqlite:///":
        raise Wrong("the path of the file is missing")
    return value


def _from_environment(value: str, environment: Environment) -> Secret:
    if not (named := _VARIABLE.fullmatch(value)):
        raise Wrong('the name of an environment variable must follow "env:"')
    # Files and secret stores leave a line break at the end.
    value = environment.get(named[1], "").strip()
    return Secret(value, named[1], alike="" if value else _alike(named[1], environment))


def _alike(name: str, environment: Environment) -> str:
    from difflib import get_close_matches

    if name[-1].isdigit():  # one of several keys, which others need not be
        return ""
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


SECONDS = plain(
    "a number of seconds above 0", lambda value: type(value) in (int, float) and 0 < value < 1e9
)
HOSTS = listed(
    plain(
        "a name or an address without http:// and path",
        lambda value: isinstance(value, str) and re.fullmatch(r"[^\s/@]+", value) is not None,
    ),
    "a list of names or addresses, without http:// and path",
)
ALL_DOORS = ("chat", "responses", "messages", "ollama")
DOORS = listed(choice(*ALL_DOORS), "a list of " + ", ".join(f'"{name}"' for name in ALL_DOORS))
SECRET = Allowed('text, or "env:NAME" for an environment variable', _secret, secret=True)
OWN_SECRET = Allowed(SECRET.words, _own_secret, secret=True)
KEY = Allowed(
    'text, "env:NAME" for an environment variable, or "client" for the key each client sends',
    _key,
    secret=True,
)
SECRETS = listed(SECRET, 'a list of texts, or of "env:NAME" for environment variables')
HEADERS = table_of(SECRET, 'a table of texts, or of "env:NAME" for environment variables')
PROXY = Allowed('an http:// address, or "env:NAME"', _proxy, secret=True)
ADDRESS = Allowed("an http:// or https:// address", _address)
KEYS = Allowed(
    'text, "env:NAME" for an environment variable, a list of those, or "client" for the key each '
    "client sends",
    _keys,
    secret=True,
)
BUDGET = Allowed('text such as "10 USD/day"; or hour, week, month, total', _budget)
SHARES = Allowed("a list of numbers, 0 or more", _numbers)
DURATION_OR_NONE = plain(
    "a number of seconds, 0 or more", lambda value: type(value) in (int, float) and 0 <= value < 1e9
)
STATE_URL = _store("sqlite:///", "redis://", "rediss://", "memory:")
LEDGER_URL = _store("sqlite:///", "postgresql://", "off")
PRICE = Allowed(f"a table of USD a million tokens: {', '.join(_PRICED)}", _price)
