"""Rules on one module: its length, its words about itself, its state and its exceptions."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence

from tests.house.source import Module, at, functions, imports, nodes, own_nodes, parameters

FILE_LINES = 350
SUPPRESSIONS = 3
# A request of anybody; a package of anybody, when it is imported; tools of anybody, when they run.
SEAMS = ("middleware/server/edge.py", "adapters/kind.py", "middleware/tools/foreign.py")
# Commands, tools that are called without a loop, a database whose driver has to have one, and the
# process that only starts others.
LOOPS = (
    *("middleware/cli/", "middleware/tools/", "middleware/accounts/ledger/"),
    "middleware/server/workers/supervisor.py",
)


def long_files(modules: Sequence[Module]) -> Iterator[str]:
    for module in modules:
        count = len(module.source.splitlines())
        if count > FILE_LINES:
            yield at(module, count, f"{count} lines, at most {FILE_LINES}")


def second_loops(modules: Sequence[Module]) -> Iterator[str]:
    """What is remembered of requests is of the one loop that serves them, and of its thread."""
    for module, call in nodes(modules, ast.Call):
        begins = ast.unparse(call.func) in {"asyncio.run", "asyncio.Runner"}
        if begins and not module.path.startswith(LOOPS):
            yield at(module, call.lineno, f"a loop of its own, allowed only in {', '.join(LOOPS)}")


def missing_docstrings(modules: Sequence[Module]) -> Iterator[str]:
    for module in modules:
        if not ast.get_docstring(module.tree):
            yield at(module, 1, "no docstring says what the module is")


def missing_annotations(modules: Sequence[Module]) -> Iterator[str]:
    for module, function in functions(modules):
        bare = [argument.arg for argument in parameters(function) if not argument.annotation]
        if function.returns is None:
            bare.append("return")
        if bare:
            yield at(module, function.lineno, f"{function.name}: no type for {', '.join(bare)}")


def broad_handlers(modules: Sequence[Module]) -> Iterator[str]:
    broad = {"Exception", "BaseException"}
    for module, handler in nodes(modules, ast.ExceptHandler):
        caught = {
            node.id for node in ast.walk(handler.type or handler) if isinstance(node, ast.Name)
        }
        if module.path not in SEAMS and (handler.type is None or broad & caught):
            yield at(module, handler.lineno, f"broad except, allowed only in {', '.join(SEAMS)}")
    for module, call in nodes(modules, ast.Call):
        if ast.unparse(call.func).endswith("suppress") and broad & set(map(ast.unparse, call.args)):
            yield at(module, call.lineno, "suppresses every exception")


READ_ONLY = re.compile(r"(\w+\.)*(Final|Mapping|Sequence|Collection|Set|frozenset|tuple)\b")
MUTABLE_CALLS = {
    "list",
    "dict",
    "set",
    "bytearray",
    "defaultdict",
    "deque",
    "Counter",
    "OrderedDict",
}
MUTABLE_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def is_mutable(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in MUTABLE_CALLS
    return isinstance(value, MUTABLE_DISPLAYS)


def is_mutable_state(node: ast.Assign | ast.AnnAssign) -> bool:
    annotation = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
    return is_mutable(node.value) and not READ_ONLY.match(annotation)


def mutable_state(modules: Sequence[Module]) -> Iterator[str]:
    for module in modules:
        for node in own_nodes(module.tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and is_mutable_state(node):
                yield at(
                    module, node.lineno, "mutable state of the module; say Mapping or Sequence"
                )
    for module, statement in nodes(modules, ast.Global):
        yield at(module, statement.lineno, f"global {', '.join(statement.names)}")


def suppressions(modules: Sequence[Module]) -> Iterator[tuple[Module, tokenize.TokenInfo]]:
    for module in modules:
        for token in tokenize.generate_tokens(io.StringIO(module.source).readline):
            if token.type == tokenize.COMMENT and re.search(r"type: ?ignore|noqa", token.string):
                yield module, token


def unreasoned_suppressions(modules: Sequence[Module]) -> Iterator[str]:
    reasoned = re.compile(r"# (type: ignore\[[\w,-]+\]|noqa: [A-Z]+\d+)  # \w+ \w+")
    for module, comment in suppressions(modules):
        if not reasoned.match(comment.string):
            yield at(module, comment.start[0], f"no code, or no reason after it: {comment.string}")


def too_many_suppressions(modules: Sequence[Module]) -> Iterator[str]:
    found = list(suppressions(modules))
    if len(found) > SUPPRESSIONS:
        for module, comment in found:
            yield at(module, comment.start[0], f"one of {len(found)}, at most {SUPPRESSIONS}")


def doubles(modules: Sequence[Module]) -> Iterator[str]:
    """Patching; tests use the scripted adapter and recorded bytes instead."""
    # The names of what must not be there; nothing is imported or patched here.
    patched = re.compile(r"(unittest\.mock|mock\b|\w*MagicMock|monkeypatch\.setattr|mocker)")
    for module, name in imports(modules):
        if patched.match(f"{name}."):
            yield at(module, 1, f"imports {name}")
    for module, call in nodes(modules, ast.Call):
        if patched.match(ast.unparse(call.func)):
            yield at(module, call.lineno, f"patches with {ast.unparse(call.func)}")
