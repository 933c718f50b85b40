"""Rules on names and folders: one class of a name, nouns for modules, no dead names."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tests.house.source import Module, at, nodes

MODULES = 15

# What every kind of upstream has of its own, under the one name by which it is asked for.
SHAPES = frozenset({"Abilities", "Options", "State"})

PARTICIPLES: Mapping[str, str] = {
    "framing": "the technical word for bytes made frames",
    "routing": "the technical word for a name made a way",
    "building": "what is built of a config, before it serves",
    "listening": "the server's own part of a connection",
    "serving": "the life of a server, from its start to its end",
    "reloading": "the life of a config beside it",
    "answering": "the walk of one request to its answer",
    "scrubbing": "taking secrets out, as it is called",
    "merging": "schemas into one, as JSON Schema calls it",
    "reading": "of configs: the counterpart of `writing`",
    "thinking": "the field of Claude's requests",
    "ending": "the end of Claude's answers",
    "structured": "short for structured output, OpenAI's word",
    "naming": "which file a name of a model is",
    "collecting": "what importers do with what they cannot carry",
    "emulated": "the adapter `EmulatedTools`",
    "scripted": "the kind's name, as configs have it",
    "shared": "what kinds share",
}


def twin_classes(modules: Sequence[Module]) -> Iterator[str]:
    """Two public classes of one name: whoever looks for one finds the other."""
    first: dict[str, Module] = {}
    for module, found in nodes(modules, ast.ClassDef):
        if found.name.startswith("_") or found.name in SHAPES:
            continue
        other = first.setdefault(found.name, module)
        if other is not module:
            yield at(module, found.lineno, f"{found.name} is a class of {other.path} too")


def participles(modules: Sequence[Module]) -> Iterator[str]:
    """A module is named by a noun; a bare participle says neither what it holds nor does."""
    participle = re.compile(r"[a-z]+(ing|ed)|given|held|kept|known|made|said|sent|shown|told")
    for module in modules:
        word = module.name.rpartition(".")[2]
        if participle.fullmatch(word) and word not in PARTICIPLES:
            yield at(module, 1, f"{word!r} is a participle")


def full_folders(modules: Sequence[Module]) -> Iterator[str]:
    inside = Counter(
        module.path.rpartition("/")[0]
        for module in modules
        if not module.path.endswith(("/__init__.py", "/conftest.py"))
    )
    for folder, count in inside.items():
        if count > MODULES:
            yield f"{folder}: {count} modules, at most {MODULES}"


def words_of(module: Module) -> Counter[str]:
    """Every name a module uses: read, asked of an object, imported, or written in a string."""
    found: Counter[str] = Counter()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found[node.id] += 1
        elif isinstance(node, ast.Attribute):
            found[node.attr] += 1
        elif isinstance(node, ast.alias):
            found[node.name.rpartition(".")[2]] += 1
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(re.findall(r"\w+", node.value[:200]))
    return found


def public_names(module: Module) -> Iterator[tuple[str, int]]:
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (name for target in targets for name in ast.walk(target)):
                if isinstance(name, ast.Name):
                    yield name.id, name.lineno


def dead_names(modules: Sequence[Module]) -> Iterator[str]:
    """Public names that nothing of the product uses."""
    used: Counter[str] = Counter()
    for module in modules:
        used += words_of(module)
    for module in modules:
        for name, line in public_names(module):
            if not name.startswith("__") and not used[name]:
                yield at(module, line, f"nothing uses {name}")
