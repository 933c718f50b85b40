"""pydantic's JSON Schemas as models are shown them: without titles, definitions in their place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from adapters.protocol import Json
from adapters.shared.schema.walk import with_children, without

_LEFT_OUT = frozenset({"title", "discriminator"})
_REFERENCE = "#/$defs/"


def untitled(schema: Json) -> Json:
    """A schema of others without titles; what refers stays as it is."""
    bare = with_children(without(schema, {"title", "$schema"}), _untitled)
    if "$defs" in bare:
        bare["$defs"] = {name: _untitled(one) for name, one in bare["$defs"].items()}
    return bare


def _untitled(schema: object) -> object:
    return untitled(schema) if isinstance(schema, dict) else schema


class Definitions:
    """What schemas refer to; only what refers to itself is referred to still."""

    def __init__(self, found: Mapping[str, Json]) -> None:
        self._found = found
        self._needed = {name: set(_named(one)) for name, one in found.items()}
        self._endless = {name for name in found if name in self._reached(name)}

    def _reached(self, name: str) -> set[str]:
        seen: set[str] = set()
        ways = [*self._needed[name]]
        while ways:
            if (way := ways.pop()) not in seen:
                seen.add(way)
                ways += self._needed[way]
        return seen

    def inlined(self, schema: Json) -> Json:
        name = _name(schema)
        if name and name not in self._endless:
            schema = {**self._found[name], **without(schema, {"$ref"})}
            return self.inlined(schema)
        return with_children(without(schema, _LEFT_OUT), self._inlined)

    def _inlined(self, schema: object) -> object:
        return self.inlined(schema) if isinstance(schema, dict) else schema

    def left(self, schema: Json) -> Json:
        """Definitions that an inlined schema still needs."""
        names = set(_named(schema))
        for name in [*names]:
            names |= self._reached(name) & self._endless
        return {name: self.inlined(self._found[name]) for name in sorted(names)}


def _name(schema: Json) -> str:
    reference = schema.get("$ref")
    return reference.removeprefix(_REFERENCE) if isinstance(reference, str) else ""


def _named(schema: object) -> Iterator[str]:
    """The names of definitions a schema refers to."""
    if isinstance(schema, dict):
        if name := _name(schema):
            yield name
        for one in schema.values():
            yield from _named(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from _named(one)
