"""The rule on receipts: every code is declared once, and said by somebody."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tests.house.source import Module, at, nodes

DECLARING = "adapters/receipts.py"
NOTING = ("Note", "add", "note")


def receipt_codes(modules: Sequence[Module]) -> Iterator[str]:
    """Codes that are declared and not said, or said and not declared."""
    others = [module for module in modules if module.path != DECLARING]
    declared = {
        code
        for _, node in nodes([one for one in modules if one not in others], ast.Subscript)
        if name_in(node.value) == "Literal"
        for code in strings(node)
    }
    said = {text for module in others for text in strings(module.tree)}
    for code in sorted(declared - said):
        yield f"{DECLARING}: nobody says '{code}'"
    for module, call in nodes(others, ast.Call):
        if name_in(call.func) in NOTING and len(call.args) > 1:
            for code in sorted({*strings(call.args[0])} - declared):
                yield at(module, call.lineno, f"'{code}' is not declared")


def name_in(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
