"""What is known of one provider's language stands in its package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from adapters.kind import kind_names
from tests.house.source import Module, at, imports, nodes

# A door has the name of the service whose protocol it is, here and where doors are configured; so
# have clients that are run. What reads other gateways' configs, or fetches files for one kind;
# names of families of models and of formats they call tools in; kinds of server tools, of which one
# has the name of its service.
NAME_KINDS = re.compile(
    r"middleware/(cli/(import\w*|launch|pull)/.*|server/catalog\.py"
    r"|wrappers/emulation/formats/table\.py|config/(keys|tools|values)\.py|doors/ollama/\w+\.py"
    r"|server/api/tools\.py|tools/(kinds|tavily)\.py)"
)


def named_kinds(modules: Sequence[Module]) -> Iterator[str]:
    """Code of the gateway that knows a kind by its name must change for each new one."""
    ours = [
        module
        for module in modules
        if module.path.startswith("middleware/") and not NAME_KINDS.fullmatch(module.path)
    ]
    for module, text in nodes(ours, ast.Constant):
        if text.value in kind_names():
            yield at(module, text.lineno, f"names the kind '{text.value}'")
    for module, name in imports(ours):
        if name.startswith(tuple(f"adapters.{kind}" for kind in kind_names())):
            yield at(module, 1, f"imports {name}")
