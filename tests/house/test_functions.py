"""The figures of functions: length, complexity, nesting, parameters; each bar is shown a breach."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import pytest

from tests.house.source import OURS, Function, Module, at, functions, own_nodes, parameters

BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.With, ast.AsyncWith, ast.Match)
CHOICES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)


def length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def choices(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return int(isinstance(node, CHOICES))


def complexity(function: Function) -> int:
    return 1 + sum(choices(node) for node in own_nodes(function))


def depth(node: ast.AST) -> int:
    children = (child for child in ast.iter_child_nodes(node) if not isinstance(child, Function))
    return max((depth(child) + opens_block(node, child) for child in children), default=0)


def opens_block(parent: ast.AST, child: ast.AST) -> bool:
    follows_else = isinstance(parent, ast.If) and parent.orelse == [child]
    return isinstance(child, BLOCKS) and not (isinstance(child, ast.If) and follows_else)


@dataclass(frozen=True)
class Bar:
    """No function is above `most`; 95 in 100 are at or below `usual`."""

    measure: Callable[[Function], int]
    most: int
    usual: int
    breach: str


BARS: Mapping[str, Bar] = {
    "lines": Bar(length, 50, 30, "def f():\n" + " x = 1\n" * 50),
    "complexity": Bar(
        complexity, 12, 8, "def f():\n" + " if a: pass\n" * 9 + " return [a for a in b if c or d]"
    ),
    "nesting": Bar(
        depth,
        4,
        4,
        "def f():\n for a in b:\n  if c:\n   with d:\n    try:\n     if e: pass\n    finally: g",
    ),
    "parameters": Bar(
        lambda function: len(parameters(function)),
        5,
        5,
        "def f(self, a, b, /, c, *d, e, **g): pass",
    ),
}


@cache
def measured(figure: str) -> Sequence[tuple[int, Module, Function]]:
    measure = BARS[figure].measure
    return [(measure(function), module, function) for module, function in functions(OURS)]


@pytest.mark.parametrize("figure", BARS)
def test_no_function_is_above_the_bar(figure: str) -> None:
    bar, found = BARS[figure], measured(figure)
    above = [
        at(module, function.lineno, f"{function.name} has {figure} {value}, at most {bar.most}")
        for value, module, function in found
        if value > bar.most
    ]
    assert not above, "\n".join(above)


@pytest.mark.parametrize("figure", BARS)
def test_nearly_all_functions_are_at_the_usual_figure(figure: str) -> None:
    bar, found = BARS[figure], measured(figure)
    above = [
        at(module, function.lineno, f"{function.name} has {figure} {value}")
        for value, module, function in found
        if value > bar.usual
    ]
    share = f"more than 5 % of {len(found)} functions are above {figure} {bar.usual}:"
    assert len(above) <= 0.05 * len(found), "\n".join([share, *above])


@pytest.mark.parametrize("figure", BARS)
def test_bar_counts(figure: str) -> None:
    bar = BARS[figure]
    (function,) = [found for _, found in functions([Module("adapters/x.py", bar.breach)])]
    assert bar.measure(function) == bar.most + 1
