"""Which model of a config a name means: one with just this name, or the longest before its `*`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

# What is learned of models is kept by their names, which behind a * are the client's words.
_LONGEST = 256
_LATEST = ":latest"
"""What a name without a tag has at an Ollama, whose names some configs repeat."""


class Meant(NamedTuple):
    id: str
    """The model's name in the config."""
    carried: str = ""
    """What stands in place of its `*`."""


class Wildcard(NamedTuple):
    before: str
    after: str
    id: str

    def carried(self, name: str) -> str:
        """What stands in place of the `*`; empty if the name does not fit."""
        if name.startswith(self.before) and name.endswith(self.after):
            return name[len(self.before) : len(name) - len(self.after)]
        return ""


def public_name(line: str, name: str, asked: str) -> str:
    """The public name of what an upstream calls `asked`, by a line of the config and its `name`."""
    before, star, after = name.partition("*")
    return line.replace("*", asked[len(before) : len(asked) - len(after)]) if star else line


class PublicNames:
    """Names of models in a config; a `*` in one stands for any text, but not for none."""

    def __init__(self, names: Iterable[str]) -> None:
        names = tuple(names)
        self._plain = frozenset(name for name in names if "*" not in name)
        parts = [(*name.partition("*"), name) for name in names if "*" in name]
        found = [Wildcard(before, after, name) for before, _, after, name in parts]
        self.wildcards = sorted(found, key=lambda w: (-len(w.before), -len(w.after)))

    def meant(self, name: str) -> Meant | None:
        for known in (name, name + _LATEST):
            if known in self._plain:
                return Meant(known)
        if len(name) <= _LONGEST:
            for wildcard in self.wildcards:
                if carried := wildcard.carried(name):
                    return Meant(wildcard.id, carried)
        return None
