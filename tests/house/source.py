"""The source of the project as its rules read it: modules, functions, imports."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

from tests.support.paths import ROOT

Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Module:
    """One source file; `path` is relative to the root of the project."""

    path: str
    source: str = field(repr=False)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source, self.path)

    @cached_property
    def nodes(self) -> Mapping[type[ast.AST], Sequence[ast.AST]]:
        """All of the tree, by their types: it is walked once for all rules."""
        found: dict[type[ast.AST], list[ast.AST]] = {}
        for node in ast.walk(self.tree):
            found.setdefault(type(node), []).append(node)
        return found

    @property
    def name(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def package(self) -> str:
        return self.name if self.path.endswith("__init__.py") else self.name.rpartition(".")[0]


Rule = Callable[[Sequence[Module]], Iterator[str]]


def read(*folders: str) -> tuple[Module, ...]:
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return tuple(Module(path.relative_to(ROOT).as_posix(), path.read_text()) for path in paths)


OURS = read("adapters", "middleware")
TESTS = read("tests")


def nodes(modules: Iterable[Module], kind: type[Node]) -> Iterator[tuple[Module, Node]]:
    for module in modules:
        for one, found in module.nodes.items():
            if issubclass(one, kind):
                yield from ((module, cast(Node, node)) for node in found)


def functions(modules: Sequence[Module]) -> Iterator[tuple[Module, Function]]:
    yield from nodes(modules, ast.FunctionDef)
    yield from nodes(modules, ast.AsyncFunctionDef)


def at(module: Module, line: int, text: str) -> str:
    return f"{module.path}:{line}: {text}"


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below a node except the functions and classes defined inside it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.ClassDef):
            yield child
            yield from own_nodes(child)


def parameters(function: Function) -> list[ast.arg]:
    given = function.args
    named = [*given.posonlyargs, *given.args]
    rest = [argument for argument in (given.vararg, given.kwarg) if argument]
    if named and named[0].arg in {"self", "cls"}:
        named = named[1:]
    return [*named, *given.kwonlyargs, *rest]


def absolute(module: Module, statement: ast.ImportFrom) -> str:
    if not statement.level:
        return statement.module or ""
    parts = module.package.split(".")
    above = parts[: len(parts) - statement.level + 1]
    return ".".join([*above, *filter(None, [statement.module])])


def imports(modules: Sequence[Module]) -> Iterator[tuple[Module, str]]:
    """Every imported name, late ones too; `from a import b` is `a.b`."""
    for module, plain in nodes(modules, ast.Import):
        yield from ((module, alias.name) for alias in plain.names)
    for module, chosen in nodes(modules, ast.ImportFrom):
        start = absolute(module, chosen)
        yield from ((module, f"{start}.{alias.name}") for alias in chosen.names)
