"""Rules on who imports whom."""

from __future__ import annotations

import graphlib
import re
from collections.abc import Iterator, Sequence

from tests.house.source import Module, at, imports
from tests.support.paths import ROOT


def upward_imports(modules: Sequence[Module]) -> Iterator[str]:
    for module, name in imports(modules):
        if module.path.startswith("adapters/") and name.startswith("middleware"):
            yield at(module, 1, f"a leaf imports {name}")


DOORS_PUT_TOGETHER = (
    "middleware/server/app.py",
    "middleware/cli/explain.py",
    "middleware/cli/cassettes/comparison.py",
)


def named_doors(modules: Sequence[Module]) -> Iterator[str]:
    """Outside of `doors/` code binds `Door`; which doors there are is said where it begins."""
    for module, name in imports(modules):
        inside = module.path.startswith(("middleware/doors/", KEEPS_OPENAI))
        if not inside and re.match(r"middleware\.doors\.[a-z_]+\.", name):
            if not name.startswith((*SHARED_BY_DOORS, cold_side_of(module))):
                yield at(module, 1, f"imports {name}, which is one door's own")
        elif name.endswith("_DOOR") and not inside and module.path not in DOORS_PUT_TOGETHER:
            yield at(module, 1, f"chooses {name}")


def cold_side_of(module: Module) -> str:
    """The door of which a module serves the addresses that no model answers."""
    found = re.fullmatch(r"middleware/server/api/(\w+)\.py", module.path)
    return f"middleware.doors.{found[1]}." if found else "middleware.doors.door."


# Cassettes keep OpenAI's shape whatever door an ask came by.
KEEPS_OPENAI = "middleware/cassettes/asks.py"
SHARED_BY_DOORS = tuple(
    f"middleware.doors.{name}."
    for name in ("body", "chat_body", "door", "endpoint", "mistakes", "x_usetool")
)


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
