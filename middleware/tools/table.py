"""`ToolTable`: one `[tools.NAME]`, with the tools it has now and why it lacks others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from adapters.protocol import Json
from middleware.config import Config, ToolConfig
from middleware.tools.python.signature import CannotBeTool
from middleware.tools.tool import CallFailed, ServerTool

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_MOST_PROBLEMS = 10


class ToolTable(Protocol):
    @property
    def config(self) -> ToolConfig: ...

    @property
    def version(self) -> int:
        """Another one when its tools have changed."""

    @property
    def reasons(self) -> Mapping[str, str]:
        """Id of what is not available → why."""

    def tools(self) -> Sequence[ServerTool]: ...

    async def begin(self) -> None:
        """Start it, once; never raises."""

    async def end(self) -> None: ...


class TableContext(NamedTuple):
    """What tables are made in."""

    config: Config
    folder: Path
    """Of the config: relative paths are beside it."""
    states: Path
    """Where states of tools are kept."""
    say: Callable[[str], None]
    """Tells the operator."""


class Derived(NamedTuple):
    """What a tool is by itself, before the config says otherwise."""

    key: str
    """What `overrides` call it; empty: it is all of its table."""
    name: str
    description: str
    parameters: Json


@dataclass(frozen=True)
class Declared:
    """What a table's tools have in common."""

    id: str
    name: str
    declaration: Json
    timeout: float
    written: Json | None = None
    """Parameters by hand: arguments are held to them."""
    searches: bool = False
    closed: bool = True
    """Arguments that the schema does not name are refused, unless it says otherwise."""

    @cached_property
    def _validator(self) -> Draft202012Validator:
        from jsonschema import Draft202012Validator  # late: most tools do not need it

        schema = self.written or self.declaration["function"]["parameters"]
        closed = {"additionalProperties": False} if self.closed else {}
        return Draft202012Validator({**closed, **schema})

    def hold(self, arguments: Mapping[str, object]) -> None:
        """Hold arguments to the schema; raises `CallFailed`."""
        problems = []
        for error in self._validator.iter_errors(arguments):
            where = ".".join(map(str, error.absolute_path))
            problems.append(f"{where}: {error.message}" if where else error.message)
        if problems:
            told = "; ".join(problems[:_MOST_PROBLEMS])
            raise CallFailed(f"invalid arguments: {told}")


def declared(config: ToolConfig, derived: Derived) -> Declared:
    """What the config makes of a tool, or raise `CannotBeTool`."""
    over = config.overrides.get(derived.key, {})
    said = [over.get("description"), config.description, derived.description]
    written = over.get("parameters") or config.parameters
    function: Json = {
        "name": over.get("name") or config.name or derived.name,
        "description": next(one for one in said if one is not None),
        "parameters": _with_defaults(written or derived.parameters, config),
    }
    if config.strict:
        _require_all(function["parameters"])
        function["strict"] = True
    return Declared(
        id=f"{config.id}.{derived.key}" if derived.key else config.id,
        name=function["name"],
        declaration={"type": "function", "function": function},
        timeout=over.get("timeout") or config.timeout,
        written=dict(written) if written else None,
    )


def _with_defaults(parameters: Mapping[str, Any], config: ToolConfig) -> Json:
    """What the operator presets is not required."""
    left = [one for one in parameters.get("required", ()) if one not in config.defaults]
    bare = {name: said for name, said in parameters.items() if name != "required"}
    return {**bare, "required": left} if left else bare


def _require_all(parameters: Mapping[str, Any]) -> None:
    for one in parameters.get("properties", ()):
        if one not in parameters.get("required", ()):
            raise CannotBeTool(f"strict = true, but its parameter '{one}' is optional")
