"""What every call goes through: its arguments read, its time measured, its failures told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterable
from typing import NoReturn

from adapters.protocol import Json
from middleware.tools.foreign import Raised, outcome_of
from middleware.tools.results import failed
from middleware.tools.tool import CallFailed, ToolContext, ToolResult

_GRACE = 0.3
"""Seconds in which what was cancelled may close what it has open."""


def arguments_of(text: str) -> Json:
    """Arguments as models write them; integers of any length survive."""
    try:
        found = json.loads(text, parse_constant=_no_json) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        told = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise CallFailed(f"the arguments are no JSON: {told}") from error
    if not isinstance(found, dict):
        raise CallFailed("the arguments are no JSON object")
    if r"\ud" in text.lower():  # half of a surrogate pair is no character
        found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    return found


def _no_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


async def timed(
    work: Coroutine[object, object, ToolResult], name: str, seconds: float, context: ToolContext
) -> ToolResult:
    """Let it run as long as it may; never raises but when it is cancelled itself."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    task = asyncio.ensure_future(outcome_of(work))
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if not done:
            context.cancelled.set()
            task.cancel()
            await asyncio.wait({task}, timeout=_GRACE)
            return failed(f"{name} timed out after {seconds:g} s", loop.time() - began)
    except asyncio.CancelledError:
        context.cancelled.set()
        task.cancel()
        raise
    outcome, took = task.result(), loop.time() - began
    if isinstance(outcome, Raised):
        return failed(f"{name}: {told(outcome)}", took)
    return outcome._replace(seconds=took)


def told(raised: Raised) -> str:
    return str(raised.error) if isinstance(raised.error, CallFailed) else str(raised)


def no_such_tool(name: str, names: Iterable[str]) -> ToolResult:
    """What a call of a tool that is not there gets."""
    there = ", ".join(names) or "none"
    return failed(f"there is no tool '{name[:80]}'. There are: {there}.")
