"""Rules on classes: how deep they inherit, and how they are told apart."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from tests.house.source import Function, Module, at, nodes

ANCESTORS = 2


def ancestors(name: str, bases: Mapping[str, Sequence[str]]) -> int:
    """How many classes stand above this one; those that only give a shape do not count."""
    shapes = {"Protocol", "Generic", "NamedTuple", "TypedDict", "Enum", "StrEnum", "IntEnum"}
    above = [base for base in bases.get(name, ()) if base not in shapes]
    return max((1 + ancestors(base, bases) for base in above), default=0)


def is_exception(name: str, bases: Mapping[str, Sequence[str]]) -> bool:
    ends_so = name.endswith(("Exception", "Error"))
    return ends_so or any(is_exception(base, bases) for base in bases.get(name, ()))


def deep_classes(modules: Sequence[Module]) -> Iterator[str]:
    classes = list(nodes(modules, ast.ClassDef))
    bases = {
        found.name: [re.sub(r"\[.*|^.*\.", "", ast.unparse(base)) for base in found.bases]
        for _, found in classes
    }
    for module, found in classes:
        count = ancestors(found.name, bases)
        if count > ANCESTORS and not is_exception(found.name, bases):
            yield at(
                module, found.lineno, f"{found.name} has {count} ancestors, at most {ANCESTORS}"
            )


def members(found: ast.ClassDef) -> Iterator[str]:
    """The names a class gives what it has: methods, and fields that are declared."""
    for node in found.body:
        if isinstance(node, Function):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield ast.unparse(node.target)


def adapter_members(modules: Sequence[Module]) -> set[str]:
    """All that an adapter may be asked for, by name."""
    shapes = {"Adapter", "Leaf", "Wrapper"}
    classes = [found for _, found in nodes(modules, ast.ClassDef)]
    adapters = [one for one in classes if shapes & {one.name, *map(ast.unparse, one.bases)}]
    return {name for found in adapters for name in members(found)}


def untyped_members(modules: Sequence[Module]) -> Iterator[str]:
    """A member of an adapter that is looked for by its name escapes the type checker."""
    known = adapter_members(modules)
    for module, call in nodes(modules, ast.Call):
        asks = ast.unparse(call.func) in ("getattr", "hasattr") and len(call.args) > 1
        name = call.args[1] if asks else None
        if isinstance(name, ast.Constant) and name.value in known:
            yield at(module, call.lineno, f"asks an adapter for {name.value!r} by name")
    for module, found in nodes(modules, ast.ClassDef):
        if any(ast.unparse(one).endswith("runtime_checkable") for one in found.decorator_list):
            yield at(module, found.lineno, f"{found.name} is told apart by its members' names")
