"""The calls of a round that are run here, side by side, and what is shown of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from adapters.protocol import Aside, Event, Journey, Json, ReasoningDelta, ServerCall
from adapters.wire.capture import Capture, CapturedTool
from middleware.tools.calls import no_such_tool
from middleware.tools.tool import ToolContext, ToolResult
from middleware.wrappers.server_tools.menu import Menu, Steps, ToolSource
from middleware.wrappers.server_tools.round import Round, RoundCall

_SHOWN = 2000
"""Characters of a result that clients see as a step."""


@dataclass(slots=True)
class Runner:
    shelf: ToolSource
    context: ToolContext
    journey: Journey
    manner: Steps
    capture: Capture | None = None
    """Where results are recorded, or come from."""
    done: list[Json] = field(default_factory=list)
    """Steps that are over, of all rounds."""

    async def run(self, menu: Menu, answer: Round) -> AsyncGenerator[Event, None]:
        """Run the round's calls to their ends; what is yielded is for the client."""
        steps: asyncio.Queue[Event | None] = asyncio.Queue()
        calls = answer.run_here
        tasks = [asyncio.create_task(self._run(call, menu, answer, steps)) for call in calls]
        for task in tasks:
            task.add_done_callback(lambda _: steps.put_nowait(None))
        left = len(tasks)
        try:
            while left:
                step = await steps.get()
                if step is None:
                    left -= 1
                else:
                    yield step
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._keep(calls, [task.result() for task in tasks], answer.number)

    async def _run(
        self, call: RoundCall, menu: Menu, answer: Round, steps: asyncio.Queue[Event | None]
    ) -> ToolResult:
        name, arguments, began = call.start.name, call.arguments, asyncio.get_running_loop().time()
        offer, step = menu.run_here.get(name), _step(call, answer.number)
        show = partial(self._show, steps)
        call.table = offer.table if offer else ""
        show({**step, "state": "started", "arguments": _read(arguments)})
        result = None
        try:
            if offer is None:
                result = no_such_tool(name, menu.names)
            elif known := self._known(name, arguments):
                result = _recorded(known)
            else:
                say = partial(_say, show, step) if self.manner else None
                result = await self.shelf.run(offer, arguments, self.context, say)
            return result
        finally:
            self._log(offer.tool.id if offer else name[:80], answer.number, result, began)
            if result is not None:
                show({**step, "state": "done", **_told(result)})

    def _known(self, name: str, arguments: str) -> CapturedTool | None:
        return self.capture.known_result(name, arguments) if self.capture is not None else None

    def _keep(self, calls: Sequence[RoundCall], results: Sequence[ToolResult], number: int) -> None:
        for call, result in zip(calls, results, strict=True):
            call.result = result
            if self.capture is not None:
                came = call.start.name, call.arguments, result.content, result.failed
                self.capture.tools.append(CapturedTool(*came, result.sources))
            if self.manner is True:
                told = {"state": "done", "arguments": _read(call.arguments), **_told(result)}
                self.done.append({**_step(call, number), **told})

    def _show(self, steps: asyncio.Queue[Event | None], step: Json) -> None:
        if self.manner is True:
            steps.put_nowait(Aside("step", step))
        elif self.manner:
            steps.put_nowait(ReasoningDelta(_in_words(step)))

    def _log(self, tool: str, number: int, result: ToolResult | None, began: float) -> None:
        seconds = round(asyncio.get_running_loop().time() - began, 4)
        ok = result is not None and not result.failed
        characters = len(result.text) if result is not None else 0
        self.journey.tools.append(ServerCall(tool, number, seconds, ok, characters))


def _recorded(known: CapturedTool) -> ToolResult:
    result = ToolResult(known.content, known.failed, sources=(*known.sources,))
    return result._replace(characters=len(result.text))


def _say(show: Any, step: Json, text: str) -> None:
    show({**step, "state": "piece", "text": text})


def _step(call: RoundCall, number: int) -> Json:
    return {"id": call.start.id, "round": number, "tool": call.start.name}


def _told(result: ToolResult) -> Json:
    seconds = round(result.seconds, 4)
    return {"result": result.text[:_SHOWN], "is_error": result.failed, "seconds": seconds}


def _read(arguments: str) -> Any:
    try:
        return orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        return arguments


def _in_words(step: Json) -> str:
    """For people, as a thought."""
    match step["state"]:
        case "started":
            said = step["arguments"]
            arguments = said if isinstance(said, str) else orjson.dumps(said).decode()
            return f"\n[{step['tool']} {arguments}]\n"
        case "piece":
            return str(step["text"])
        case _:
            return f"\n[{step['tool']}: {step['result']}]\n"
