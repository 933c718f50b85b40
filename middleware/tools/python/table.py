"""Tables of kind `python`: modules loaded, classes made and started, functions called."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.protocol import Json
from middleware.config import ToolConfig
from middleware.tools.foreign import Raised, attempt, outcome_of
from middleware.tools.python.function import PreparedFunction, function_of
from middleware.tools.python.modules import ModuleMember, ToolModules, load_modules, reason_of
from middleware.tools.python.signature import CannotBeTool
from middleware.tools.python.threads import ThreadShare
from middleware.tools.table import Declared, Derived, TableContext, declared
from middleware.tools.tool import ToolContext, ToolResult
from middleware.tools.tool_marks import mark_of

_LIFE = ("load_state", "reset", "save_state", "start", "stop")
_LONGEST_STEP = 30.0
"""Seconds that loading, starting or stopping may take."""


@dataclass(frozen=True)
class PythonTool(Declared):
    function: PreparedFunction | None = None
    threads: ThreadShare | None = None

    async def run(self, arguments: Json, context: ToolContext, /) -> ToolResult:
        assert self.function is not None
        assert self.threads is not None
        if self.written is not None:
            self.hold(arguments)
        return ToolResult(await self.function.call(arguments, context, self.threads))


class PythonTable:
    def __init__(self, config: ToolConfig, around: TableContext) -> None:
        self.config = config
        self.version = 0
        self.reasons: dict[str, str] = {}
        self._around = around
        self._tools: list[PythonTool] = []
        self._objects: dict[str, object] = {}
        """Instances of classes, by the entry that names them."""
        self._begun: asyncio.Task[None] | None = None
        self._threads = around.threads.share()

    def tools(self) -> Sequence[PythonTool]:
        return self._tools

    async def begin(self) -> None:
        if self._begun is None:
            self._begun = asyncio.ensure_future(self._begin())
        await asyncio.shield(self._begun)

    async def _begin(self) -> None:
        config = self.config
        name = f"usetool_tools_{config.id.replace('-', '_')}"
        loaded = await self._in_time(
            lambda: load_modules(config.module or "", self._around.folder, name)
        )
        if isinstance(loaded, Raised):
            self._lacks(config.id, loaded)
        elif isinstance(loaded, ToolModules):
            for entry in config.functions:
                await self._add(entry, loaded)
        self.version += 1

    async def _add(self, entry: str, modules: ToolModules) -> None:
        identity = f"{self.config.id}.{entry.rpartition(':')[2]}"
        found = attempt(lambda: [*modules.chosen(entry)])
        if isinstance(found, Raised):
            self.reasons[identity] = str(found.error)
            return
        for named in found:
            if inspect.isclass(named.value):
                await self._start(named, identity)
            else:
                self._prepare(named)

    def _prepare(self, named: ModuleMember) -> None:
        """Make a tool of a function."""
        config, callee = self.config, named.value
        identity = f"{config.id}.{named.name}"
        if not callable(callee):
            self.reasons[identity] = f"'{named.name}' is no function"
            return
        mark = mark_of(callee)
        made = attempt(lambda: function_of(callee, named.name))
        if isinstance(made, Raised):
            self.reasons[identity] = f"{named.name}: {_words(made)}"
            return
        said = made.signature
        description = said.description if mark.description is None else mark.description
        derived = Derived(named.name, mark.name or named.name, description, said.schema)
        whole = attempt(lambda: declared(config, derived))
        if isinstance(whole, Raised):
            self.reasons[identity] = f"{named.name}: {_words(whole)}"
            return
        tool = PythonTool(**vars(whole), function=made, threads=self._threads)
        self._tools.append(tool)

    async def _start(self, named: ModuleMember, identity: str) -> None:
        """Make an object of a class and start it; its public methods are the tools."""
        if self._around.config.server.workers > 1:
            told = "it is a class, but [server] workers is more than 1, and each would have one"
            self.reasons[identity] = told
            return
        make, options = named.value, self.config.options
        assert callable(make)
        made = await self._in_time(lambda: make(**options))
        if isinstance(made, Raised):
            return self._lacks(identity, made)
        kept = self._kept(named.name)
        steps = [("load_state", (kept,))] if kept is not None else []
        for step, given in (*steps, ("start", ())):
            outcome = await self._live(made, step, *given)
            if isinstance(outcome, Raised):
                return self._lacks(identity, outcome)
        self._objects[named.name] = made
        for name in _methods(made):
            self._prepare(ModuleMember(name, getattr(made, name)))

    async def _live(self, made: object, step: str, *given: object) -> object:
        """One step of an object's life, if it has it."""
        method = getattr(made, step, None)
        return await self._in_time(lambda: method(*given)) if callable(method) else None

    async def _in_time(self, work: Callable[[], object]) -> object:
        """What foreign code comes to in a thread, or in the loop if it is async."""

        async def whole() -> object:
            outcome = await self._threads.run(self.config.id, work)
            return await outcome_of(outcome) if inspect.isawaitable(outcome) else outcome

        try:
            return await asyncio.wait_for(whole(), _LONGEST_STEP)
        except TimeoutError:
            return Raised(TimeoutError(f"it did not end within {_LONGEST_STEP:g} s"))

    def _lacks(self, identity: str, raised: Raised) -> None:
        self.reasons[identity] = reason_of(raised, self._around.folder / (self.config.module or ""))

    async def end(self) -> None:
        """Keep the states of objects and stop them."""
        if self._begun is None:
            return
        await asyncio.wait({self._begun}, timeout=1)
        for name, made in self._objects.items():
            state = await self._live(made, "save_state")
            if isinstance(state, Raised):
                self._around.say(f"tools.{self.config.id}: save_state of {name}: {state}")
            elif state is not None:
                self._keep(name, state)
            stopped = await self._live(made, "stop")
            if isinstance(stopped, Raised):
                self._around.say(f"tools.{self.config.id}: stop of {name}: {stopped}")

    def _file(self, name: str) -> Path:
        return self._around.states / f"{self.config.id}-{name}.json"

    def _kept(self, name: str) -> object:
        found = attempt(lambda: json.loads(self._file(name).read_text("utf-8")))
        if isinstance(found, Raised):
            if not isinstance(found.error, FileNotFoundError):
                self._around.say(f"tools.{self.config.id}: the state of {name}: {found}")
            return None
        return found

    def _keep(self, name: str, state: object) -> None:
        file = self._file(name)

        def write() -> None:
            file.parent.mkdir(parents=True, exist_ok=True)
            new = file.with_suffix(".new")
            new.write_text(json.dumps(state), "utf-8")
            os.replace(new, file)

        written = attempt(write)
        if isinstance(written, Raised):
            told = f"tools.{self.config.id}: the state of {name} is not kept: {written}"
            self._around.say(told)


def _methods(made: object) -> Iterator[str]:
    for name in sorted(dir(type(made))):
        if not name.startswith("_") and name not in _LIFE and callable(getattr(made, name, None)):
            yield name


def _words(raised: Raised) -> str:
    return str(raised.error) if isinstance(raised.error, CannotBeTool) else str(raised)
