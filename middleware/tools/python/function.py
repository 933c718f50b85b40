"""`PreparedFunction`: a callable prepared to be called by models."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event
from types import AsyncGeneratorType, GeneratorType
from typing import Any, NamedTuple, Never

from pydantic import ValidationError

from middleware.tools.foreign import Raised, outcome_of
from middleware.tools.python.signature import CONTEXT, Callee, Signature, core, signature_of
from middleware.tools.python.threads import ThreadShare
from middleware.tools.results import Pieces, content_of
from middleware.tools.tool import CallFailed, Content, Say, ToolContext

_PATIENCE = 5.0
"""Seconds a generator waits for the loop before it goes on."""
_SHORT = 100_000
"""Characters that are written down in the loop; what is longer, or no text, in a thread."""


class CallFacts(dict[str, Any]):
    """What a function gets as `_context`: by key, by `get` and as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class ReturnedContent(NamedTuple):
    """What it returned, as it is sent."""

    content: Content


@dataclass(frozen=True, slots=True)
class PreparedFunction:
    name: str
    callee: Callee
    signature: Signature

    @property
    def is_async(self) -> bool:
        made = core(self.callee)
        return inspect.iscoroutinefunction(made) or inspect.isasyncgenfunction(made)

    async def call(
        self, arguments: Mapping[str, object], context: ToolContext, threads: ThreadShare
    ) -> Content:
        """Call it, or raise `CallFailed`."""
        positional, named = self.signature.bound(arguments)
        if self.signature.wants_context:
            named[CONTEXT] = _facts(context)

        def work() -> object:
            return self.callee(*positional, **named)

        outcome: object
        if self.is_async:
            outcome = await outcome_of(self._answered(work, context))
        else:
            outcome = await self._in_thread(work, context, threads)
        if not isinstance(outcome, Raised | ReturnedContent):
            outcome = await self._written(outcome, threads)
        if isinstance(outcome, Raised):
            raise (
                outcome.error if isinstance(outcome.error, CallFailed) else CallFailed(str(outcome))
            )
        return outcome.content

    async def _written(self, value: object, threads: ThreadShare) -> ReturnedContent | Raised:
        if isinstance(value, str) and len(value) < _SHORT:
            return self._finished(value)
        return await threads.run(self.name, lambda: self._finished(value))

    async def _in_thread(
        self, work: Callable[[], object], context: ToolContext, threads: ThreadShare
    ) -> object:
        loop = asyncio.get_running_loop()

        def whole() -> object:
            value = work()
            if inspect.isawaitable(value) or inspect.isasyncgen(value):
                return value
            if inspect.isgenerator(value):
                value = _drained(value, context, loop)
            return self._finished(value)  # here, as it may be large

        outcome = await threads.run(self.name, whole)
        if inspect.isawaitable(outcome) or inspect.isasyncgen(outcome):
            return await outcome_of(self._answered(lambda: outcome, context))
        return outcome

    async def _answered(self, work: Callable[[], object], context: ToolContext) -> object:
        value = work()
        if inspect.isawaitable(value):
            value = await value
        return await _collected(value, context) if inspect.isasyncgen(value) else value

    def _finished(self, value: object) -> ReturnedContent:
        """Hold what it returned to what it says it returns, and write it down."""
        returns = self.signature.returns
        if returns is not None:
            try:
                returns.validate_python(value, strict=True)
            except ValidationError as error:
                # Half a character is mended later.
                if any(one["type"] != "string_unicode" for one in error.errors()):
                    told = f"it returned {type(value).__name__}, but is declared to return"
                    raise CallFailed(f"{told} {self.signature.returned}") from error
        return ReturnedContent(content_of(value))


def function_of(callee: Callee, name: str | None = None) -> PreparedFunction:
    """Prepare a callable, or raise `CannotBeTool`."""
    usual = getattr(core(callee), "__name__", type(callee).__name__)
    return PreparedFunction(name or usual, callee, signature_of(callee))


def _facts(context: ToolContext) -> CallFacts:
    folder = context.workspace
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    shown = str(folder) if folder is not None else None
    return CallFacts(
        request_id=context.request,
        client=context.owner or context.client,
        model=context.model,
        tool=context.tool,
        deadline=context.deadline,
        cancelled=context.cancelled,
        session=context.session,
        session_id=context.session,
        workspace=shown,
        python_workspace_root=shown,
    )


def _drained(
    pieces: GeneratorType[object, Never, object],
    context: ToolContext,
    loop: asyncio.AbstractEventLoop,
) -> str:
    """All a generator yields, in its own thread; it is closed when nobody waits any more."""
    found = Pieces()
    try:
        for piece in pieces:
            if context.cancelled.is_set():
                break
            text = found.add(piece)
            if context.say is not None:
                _say_in(loop, context.say, text)
    finally:
        pieces.close()
    return found.joined()


def _say_in(loop: asyncio.AbstractEventLoop, say: Say, text: str) -> None:
    """Say it in the loop, and wait for that: a quick generator must not flood it."""
    said = Event()

    def whole() -> None:
        say(text)
        said.set()

    loop.call_soon_threadsafe(whole)
    said.wait(_PATIENCE)


async def _collected(pieces: AsyncGeneratorType[object, Never], context: ToolContext) -> str:
    found = Pieces()
    try:
        async for piece in pieces:
            text = found.add(piece)
            if context.say is not None:
                context.say(text)
            await asyncio.sleep(0)  # others come in between, its time-out too
    finally:
        await pieces.aclose()
    return found.joined()
