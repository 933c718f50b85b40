"""The bars of `docs/architecture.md`, measured on every run; every rule is also shown a breach."""

from __future__ import annotations

import ast
import graphlib
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support.paths import ROOT

FILE_LINES = 350
ANCESTORS = 2
SUPPRESSIONS = 3
SEAMS = ("middleware/server/edge.py",)
HEAVY = ("anthropic", "litellm", "openai")

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
        for node in ast.walk(module.tree):
            if isinstance(node, kind):
                yield module, node


def functions(modules: Sequence[Module]) -> Iterator[tuple[Module, Function]]:
    yield from nodes(modules, ast.FunctionDef)
    yield from nodes(modules, ast.AsyncFunctionDef)


def at(module: Module, line: int, text: str) -> str:
    return f"{module.path}:{line}: {text}"


# Figures of one function -----------------------------------------------------------------------

BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.With, ast.AsyncWith, ast.Match)
CHOICES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)


def length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below a node except the functions and classes defined inside it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.ClassDef):
            yield child
            yield from own_nodes(child)


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


def parameters(function: Function) -> list[ast.arg]:
    given = function.args
    named = [*given.posonlyargs, *given.args]
    rest = [argument for argument in (given.vararg, given.kwarg) if argument]
    if named and named[0].arg in {"self", "cls"}:
        named = named[1:]
    return [*named, *given.kwonlyargs, *rest]


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


@pytest.mark.parametrize("figure", BARS)
def test_no_function_is_above_the_bar(figure: str) -> None:
    bar = BARS[figure]
    found = [(bar.measure(function), module, function) for module, function in functions(OURS)]
    above = [
        at(module, function.lineno, f"{function.name} has {figure} {value}, at most {bar.most}")
        for value, module, function in found
        if value > bar.most
    ]
    assert not above, "\n".join(above)


@pytest.mark.parametrize("figure", BARS)
def test_nearly_all_functions_are_at_the_usual_figure(figure: str) -> None:
    bar = BARS[figure]
    found = [(bar.measure(function), module, function) for module, function in functions(OURS)]
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


# Rules on the source ---------------------------------------------------------------------------


def long_files(modules: Sequence[Module]) -> Iterator[str]:
    for module in modules:
        count = len(module.source.splitlines())
        if count > FILE_LINES:
            yield at(module, count, f"{count} lines, at most {FILE_LINES}")


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


# Rules on imports ------------------------------------------------------------------------------


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


def upward_imports(modules: Sequence[Module]) -> Iterator[str]:
    for module, name in imports(modules):
        if module.path.startswith("adapters/") and name.startswith("middleware"):
            yield at(module, 1, f"a leaf imports {name}")


DOORS_PUT_TOGETHER = ("middleware/server/app.py", "middleware/cli/explain.py")


def named_doors(modules: Sequence[Module]) -> Iterator[str]:
    """Outside of `doors/` code binds `Door`; which doors there are is said where it begins."""
    for module, name in imports(modules):
        inside = module.path.startswith("middleware/doors/")
        if not inside and re.match(r"middleware\.doors\.[a-z_]+\.", name):
            if not name.startswith(SHARED_BY_DOORS):
                yield at(module, 1, f"imports {name}, which is one door's own")
        elif name.endswith("_DOOR") and not inside and module.path not in DOORS_PUT_TOGETHER:
            yield at(module, 1, f"chooses {name}")


SHARED_BY_DOORS = tuple(f"middleware.doors.{name}." for name in ("door", "mistakes", "x_usetool"))


def import_cycles(modules: Sequence[Module]) -> Iterator[str]:
    known = {module.name for module in modules}
    graph: dict[str, set[str]] = {name: set() for name in known}
    for module, name in imports(modules):
        target = name if name in known else name.rpartition(".")[0]
        if target in known:
            graph[module.name].add(target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield "import cycle: " + " imported by ".join(error.args[1])


def shadowing_names(modules: Sequence[Module]) -> Iterator[str]:
    """Names of locked packages; deeper than one folder a module may have such a name."""
    locked = set(re.findall(r"^([\w-]+)==", "".join(lock.read_text() for lock in LOCKS), re.M))
    for module in modules:
        if (
            module.name.count(".") == 1
            and module.name.rpartition(".")[2].replace("_", "-") in locked
        ):
            yield at(module, 1, "has the name of a package")


LOCKS = (ROOT / "requirements.lock", ROOT / "requirements-dev.lock")

# Each rule with a breach: path → source. They are texts, only ever parsed: a rule that finds
# nothing wrong in its breach finds nothing anywhere.
RULES: Sequence[tuple[Rule, Mapping[str, str]]] = (
    (long_files, {"adapters/x.py": "x = 1\n" * 351}),
    (missing_docstrings, {"adapters/x.py": "x = 1"}),
    (missing_annotations, {"adapters/x.py": "def f(a: int): pass"}),
    (missing_annotations, {"adapters/x.py": "async def f(*a) -> None: pass"}),
    (broad_handlers, {"adapters/x.py": "try: f()\nexcept: pass"}),
    (broad_handlers, {"adapters/x.py": "try: f()\nexcept (KeyError, Exception): pass"}),
    (broad_handlers, {"adapters/x.py": "with contextlib.suppress(Exception): f()"}),
    (deep_classes, {"adapters/x.py": "class A(B): pass\nclass C(A): pass\nclass D(C): pass"}),
    (
        untyped_members,
        {"adapters/x.py": "class A(Leaf):\n def may(self): getattr(self.inner, 'may', None)"},
    ),
    (untyped_members, {"adapters/x.py": "@runtime_checkable\nclass A(Protocol): pass"}),
    (mutable_state, {"adapters/x.py": "x = {}"}),
    (mutable_state, {"adapters/x.py": "if a:\n x: dict[str, int] = dict()"}),
    (mutable_state, {"adapters/x.py": "def f():\n global x"}),
    (unreasoned_suppressions, {"adapters/x.py": "x  # type: ignore[misc]"}),
    (unreasoned_suppressions, {"adapters/x.py": "x  # noqa"}),
    (too_many_suppressions, {"adapters/x.py": "x  # noqa: E501  # a reason\n" * 4}),
    (upward_imports, {"adapters/x.py": "from middleware import app"}),
    (named_doors, {"middleware/x.py": "from middleware.doors.chat import parse"}),
    (named_doors, {"middleware/x.py": "from middleware.doors import CHAT_DOOR"}),
    (import_cycles, {"adapters/x.py": "from .y import f", "adapters/y.py": "import adapters.x"}),
    (shadowing_names, {"adapters/openai.py": ""}),
)
# Breaches of the rule against doubles, as texts too.
DOUBLES: Sequence[str] = (
    "from unittest import mock",
    "import unittest.mock",
    "MagicMock()",
    "monkeypatch.setattr(a, 'b', 1)",
    "mocker.patch('a')",
)


def name_of(value: object) -> str:
    return getattr(value, "__name__", "breach")


@pytest.mark.parametrize("rule", dict.fromkeys(rule for rule, _ in RULES), ids=name_of)
def test_rule_holds(rule: Rule) -> None:
    breaches = list(rule(OURS))
    assert not breaches, "\n".join(breaches)


@pytest.mark.parametrize(("rule", "breach"), RULES, ids=name_of)
def test_rule_sees_a_breach(rule: Rule, breach: Mapping[str, str]) -> None:
    assert list(rule([Module(path, source) for path, source in breach.items()]))


def test_tests_patch_nothing() -> None:
    breaches = list(doubles(TESTS))
    assert not breaches, "\n".join(breaches)


@pytest.mark.parametrize("source", DOUBLES)
def test_patching_is_seen(source: str) -> None:
    assert list(doubles([Module("tests/test_x.py", source)]))


# Rules on what runs and what is tracked --------------------------------------------------------


def test_importing_everything_loads_no_heavy_package() -> None:
    names = [module.name for module in OURS]
    program = f"import sys, {', '.join(names)}\nprint(*{set(HEAVY)} & set(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (loaded.returncode, loaded.stdout) == (0, "\n"), loaded.stdout + loaded.stderr


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_lock_is_hashed_and_names_no_index(lock: Path) -> None:
    text = lock.read_text()
    assert not re.findall(r".*(?:://|--index|--find-links).*", text)
    assert not [line for line in text.splitlines() if "==" in line and not line.endswith("\\")]


def test_no_tracked_file_names_a_path_of_one_machine() -> None:
    pattern = r"(^|[^[:alnum:]_.])/(work|farm|root)/[[:alnum:]._-]"
    found = subprocess.run(
        ["git", "grep", "-nIE", "--untracked", pattern],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 1, found.stdout[:2000] + found.stderr
