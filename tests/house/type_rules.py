"""Rules on types: how much of the product takes any value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tests.house.source import Module, functions, nodes

ANY = 0.10

# What encodes and decodes the JSON of others: kinds, doors, and the schemas of tools.
TRANSLATES = re.compile(
    r"adapters/(?!wire/)\w+/|middleware/doors/|middleware/wrappers/emulation/judge/"
)


def all_annotations(modules: Sequence[Module]) -> Iterator[ast.expr]:
    for _, argument in nodes(modules, ast.arg):
        if argument.annotation:
            yield argument.annotation
    for _, declared in nodes(modules, ast.AnnAssign):
        yield declared.annotation
    for _, function in functions(modules):
        if function.returns:
            yield function.returns


def takes_anything(annotation: ast.expr) -> bool:
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    return bool(names & {"Any", "Json"})


def loose_types(modules: Sequence[Module]) -> Iterator[str]:
    """`Any` and `Json` outside of what translates: there a value has a type of its own."""
    found = list(all_annotations([one for one in modules if not TRANSLATES.match(one.path)]))
    loose = sum(takes_anything(annotation) for annotation in found)
    if loose > ANY * len(found):
        yield f"{loose} of {len(found)} annotations take any value, at most {ANY:.0%}"
