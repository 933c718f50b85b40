"""Tools in process: a registry of functions, as an application would have one of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

from adapters.protocol import Json
from middleware.tools.calls import arguments_of, no_such_tool, timed
from middleware.tools.foreign import Raised, attempt
from middleware.tools.python.function import PreparedFunction, function_of
from middleware.tools.python.threads import Threads
from middleware.tools.results import failed
from middleware.tools.tool import CallFailed, Content, ToolContext, ToolResult
from middleware.tools.tool_marks import mark_of

_SECONDS = 30.0
_Callee = TypeVar("_Callee", bound=Callable[..., object])
Arguments = Mapping[str, object] | str


class ToolError(Exception):
    """A call failed; the text is what a model would be told."""


class Result(NamedTuple):
    """What a call came to."""

    text: str
    is_error: bool
    content: Content
    """The text, or OpenAI's parts where there are images."""


def schema_of(function: Callable[..., object], name: str | None = None) -> Json:
    """What models are told of a function; raises for what cannot be a tool."""
    made = function_of(function, name)
    described = made.signature.description
    return {"name": made.name, "description": described, "parameters": made.signature.schema}


class Registry:
    """Functions by name; what one has, no other sees."""

    def __init__(self, timeout: float = _SECONDS) -> None:
        self._timeout = timeout
        self._functions: dict[str, tuple[PreparedFunction, Json]] = {}

    def register(self, function: _Callee, name: str | None = None) -> _Callee:
        """Take a function in; gives it back, so it works as a decorator."""
        mark = mark_of(function)
        made = function_of(function, name or mark.name)
        said = schema_of(function, made.name)
        if mark.description is not None:
            said["description"] = mark.description
        self._functions[made.name] = made, {"type": "function", "function": said}
        return function

    def get_tools(self) -> list[Json]:
        """OpenAI's list, in the order of registration."""
        return [declared for _, declared in self._functions.values()]

    async def run(self, name: str, arguments: Arguments) -> Result:
        """Call one; never raises."""
        result = await self._run(name, arguments)
        return Result(result.text, result.failed, result.content)

    async def _run(self, name: str, arguments: Arguments) -> ToolResult:
        if name not in self._functions:
            return no_such_tool(name, self._functions)
        function, _ = self._functions[name]
        try:
            given = arguments_of(arguments) if isinstance(arguments, str) else arguments
        except CallFailed as error:
            return failed(f"{name}: {error}")
        context = replace(ToolContext(), tool=name, deadline=time.time() + self._timeout)
        return await timed(_called(function, given, context), name, self._timeout, context)

    async def acall(self, name: str, arguments: Arguments) -> str:
        """Call one, or raise `ToolError`."""
        result = await self.run(name, arguments)
        if result.is_error:
            raise ToolError(result.text)
        return result.text

    def call(self, name: str, arguments: Arguments) -> str:
        """The same where nothing is async, or from a thread of its own where something is."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.acall(name, arguments))
        found: list[str | Raised] = []
        work = threading.Thread(
            target=lambda: found.append(attempt(lambda: asyncio.run(self.acall(name, arguments))))
        )
        work.start()
        work.join()
        outcome = found[0]
        if isinstance(outcome, Raised):
            raise outcome.error
        return outcome


async def _called(
    function: PreparedFunction, arguments: Mapping[str, object], context: ToolContext
) -> ToolResult:
    content = await function.call(arguments, context, Threads(print).share())
    return ToolResult(content)
