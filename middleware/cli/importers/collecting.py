"""Taking values out of a foreign config so that whatever is not taken is told as lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

from adapters.options import Environment, Wrong
from middleware.config.values import HEADERS

NO_COUNTERPART = "has no counterpart here"
Table = dict[str, Any]
_REFERENCE = "os.environ/"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME = re.compile(r"key|token|secret|password|credential|authorization", re.IGNORECASE)
# What people write where a server asks for no key.
_STAND_INS = frozenset(
    {"none", "null", "empty", "dummy", "fake", "fake-key", "not-needed", "no-key", "anything"}
)
_NAMES_SHOWN = 4


class Unreadable(Exception):
    """The file is not what it was said to be."""


class Lost(NamedTuple):
    """Something the written config does not say."""

    of: str
    """The model it was said of; empty for the file as a whole."""
    key: str
    why: str


def references(value: Any) -> Iterator[str]:
    """Every environment variable that is named anywhere in it."""
    waiting, seen = [value], set[int]()
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            if id(one) in seen:  # YAML's aliases: the same thing again, or a ring
                continue
            seen.add(id(one))
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif is_reference(one):
            yield variable_of(one)


def is_reference(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(_REFERENCE)


def variable_of(value: str) -> str:
    """The environment variable a reference names; empty if it cannot be one."""
    name = value.removeprefix(_REFERENCE)
    return name if _VARIABLE.fullmatch(name) else ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The environment, and names for the secrets that should move into it."""

    variables: Environment
    taken: Set[str] = frozenset()
    """Variables that hold a key of somebody's already."""
    _named: dict[str, str] = field(default_factory=dict, repr=False)

    def variable(self, secret: str, wanted: str) -> str:
        """A name of its own for each secret."""
        name, number = wanted, 1
        while self._is_taken(name, secret) or self._named.setdefault(name, secret) != secret:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def _is_taken(self, name: str, secret: str) -> bool:
        """It stands for another key: in the file, or in the environment."""
        return name in self.taken or self.variables.get(name, secret) != secret


@dataclass(slots=True)
class Taking:
    """One table of the foreign config; what nobody took is left in `left`."""

    of: str
    path: str
    left: Table
    around: Surroundings
    lost: list[Lost] = field(default_factory=list)

    def lose(self, key: str, why: str) -> None:
        self.left.pop(key, None)
        self.lost.append(Lost(self.of, f"{self.path}{key}", why))

    def lose_rest(self, why: Mapping[str, str], otherwise: str = NO_COUNTERPART) -> None:
        """What nobody took."""
        for key in list(self.left):
            self.lose(key, why.get(key, otherwise))

    def take(self, *keys: str) -> Any:
        """The first of these keys that says something; the others mean the same."""
        found = [value for key in keys if (value := self.left.pop(key, None)) is not None]
        return found[0] if found else None

    def plain(self, *keys: str) -> Any:
        """A value that may stand in the environment, where it is looked up now."""
        value = self.take(*keys)
        if isinstance(value, date):  # YAML makes dates of versions
            return value.isoformat()
        if not is_reference(value):
            return value
        found = self.around.variables.get(variable_of(value))
        if not found:
            name = value.removeprefix(_REFERENCE)
            self.lose(keys[0], f"is in the environment variable {name}, which is not set here")
        return found or None

    def text(self, *keys: str) -> str | None:
        value = self.plain(*keys)
        if isinstance(value, str | int | float) or value is None:
            return None if value is None else str(value).strip() or None
        self.lose(keys[0], "is no text")
        return None

    def number(self, key: str, least: float, most: float) -> float | None:
        given = self.plain(key)
        if given is None:
            return None
        try:
            value = float(given)
        except (TypeError, ValueError):
            value = least - 1
        if least <= value <= most:
            return int(value) if value == int(value) else value
        self.lose(key, f"is no number from {least:g} to {most:g}")
        return None

    def secret(self, key: str, variable: str) -> str | None:
        """A key as a reference; one that is written out is not copied into another file."""
        value = self.take(key)
        if isinstance(value, str):
            return self.hidden(key, value, variable)
        if value is not None:
            self.lose(key, "is no text")
        return None

    def hidden(self, key: str, value: str, variable: str) -> str | None:
        if is_reference(value):
            name = variable_of(value)
            if not name:
                self.lose(key, "names an environment variable that cannot be read")
            return f"env:{name}" if name else None
        if not value or value.lower() in _STAND_INS:
            return value or None
        variable = self.around.variable(value, variable)
        self.lose(key, f"is written out, and not copied: set the environment variable {variable}")
        return f"env:{variable}"

    def headers(self, *keys: str) -> Table:
        found: Table = {}
        for key in keys:
            given = self.take(key)
            for name, value in given.items() if isinstance(given, dict) else ():
                carried: str | None = str(value)
                if _SECRET_NAME.search(str(name)) or is_reference(value):
                    carried = self.hidden(
                        f"{key}.{name}", str(value), variable_name(self.of, str(name))
                    )
                if carried is not None and self.fits(f"{key}.{name}", str(name), carried):
                    found[str(name)] = carried
        return found

    def fits(self, key: str, name: str, value: str) -> bool:
        """Whether this can be a header."""
        try:
            HEADERS.read({name: value}, {})
        except Wrong as wrong:
            self.lose(key, str(wrong) or "is no text")
            return False
        return True


def looks_secret(key: str, value: Any) -> bool:
    return isinstance(value, str) and bool(_SECRET_NAME.search(key))


def variable_name(*words: str) -> str:
    """A name for an environment variable, made of words."""
    name = "_".join(filter(None, re.split(r"[^A-Za-z0-9]+", " ".join(words)))).upper()
    return name if _VARIABLE.fullmatch(name) else f"USETOOL_{name}"


def table_of(value: Any) -> Table:
    return {str(name): inner for name, inner in value.items()} if isinstance(value, dict) else {}


def tables_of(value: Any) -> Iterator[tuple[int, Table]]:
    """The tables of a list, with their places."""
    for place, entry in enumerate(value if isinstance(value, list) else ()):
        if isinstance(entry, dict):
            yield place, table_of(entry)


def lost_lines(lost: Iterable[Lost]) -> list[str]:
    """One line for each thing that was not carried; what is lost of many models stands once."""
    models: dict[tuple[str, str], list[str]] = {}
    for one in lost:
        models.setdefault((one.key, one.why), []).append(one.of)
    return [f"{key}{_of(names)}: {why}" for (key, why), names in models.items()]


def _of(names: list[str]) -> str:
    named = list(dict.fromkeys(filter(None, names)))
    if not named:
        return ""
    more = len(named) - _NAMES_SHOWN
    shown = named if more <= 1 else [*named[:_NAMES_SHOWN], f"{more} more"]
    return f" of {', '.join(shown)}"
