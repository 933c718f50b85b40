"""The calls of a round that are run here, side by side, and what is shown of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from adapters.outcomes import ServerCall
from adapters.protocol import Aside, Event, Journey, Json, ReasoningDelta
from adapters.wire.capture import Capture, CapturedTool
from middleware.tools.calls import no_such_tool
from middleware.tools.tool import Offer, Say, ToolContext, ToolResult
from middleware.wrappers.server_tools.menu import Menu, Steps, ToolSource
from middleware.wrappers.server_tools.round import Round, RoundCall

_SHOWN = 2000
"""Characters of a result that clients see as a step."""
_DIGITS = 4
"""Of seconds."""
Show = Callable[[Json], None]


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
        show = partial(self._show, steps)
        for call in calls:
            begun = {"state": "started", "arguments": _read(call.arguments)}
            show({**_step(call, answer.number), **begun})
        tasks = [asyncio.create_task(self._run(call, menu, answer, show)) for call in calls]
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
        for task in tasks:
            task.result()
        self._keep(answer, menu)

    async def _run(self, call: RoundCall, menu: Menu, answer: Round, show: Show) -> None:
        began, step = asyncio.get_running_loop().time(), _step(call, answer.number)
        offer = menu.run_here.get(call.start.name)
        call.table = offer.table if offer else ""
        try:
            if offer is None:
                call.result = no_such_tool(call.start.name, menu.names)
            else:
                say = partial(_say, show, step, call.said) if self.manner else None
                result = await self._result(call, offer, say)
                call.order = sum(one.result is not None for one in answer.run_here)
                call.result = result
        finally:
            self._log(offer.tool.id if offer else call.start.name[:80], answer.number, call, began)
            if call.result is not None:
                show({**step, "state": "done", **_told(call.result)})

    async def _result(self, call: RoundCall, offer: Offer, say: Say | None) -> ToolResult:
        asked, known = (call.start.name, call.arguments), None
        if self.capture is not None:
            known = self.capture.known_result(*asked)
        if known is None:
            return await self.shelf.run(offer, call.arguments, self.context, say)
        if say is not None:
            for text in known.pieces:
                say(text)
        for _ in range(known.order):  # after the others, as it was
            await asyncio.sleep(0)
        return _recorded(known)

    def _keep(self, answer: Round, menu: Menu) -> None:
        for call in answer.run_here:
            assert call.result is not None
            if self.capture is not None and call.start.name in menu.run_here:
                self.capture.tools.append(_captured(call, call.result, self.manner))
            if self.manner is True:
                told = {"arguments": _read(call.arguments), **_told(call.result)}
                self.done.append({**_step(call, answer.number), "state": "done", **told})

    def _show(self, steps: asyncio.Queue[Event | None], step: Json) -> None:
        if self.manner is True:
            steps.put_nowait(Aside("step", step))
        elif self.manner:
            steps.put_nowait(ReasoningDelta(_in_words(step)))

    def _log(self, tool: str, number: int, call: RoundCall, began: float) -> None:
        seconds, result = round(asyncio.get_running_loop().time() - began, 4), call.result
        ok = result is not None and not result.failed
        characters = len(result.text) if result is not None else 0
        self.journey.tools.append(ServerCall(tool, number, seconds, ok, characters))


def _captured(call: RoundCall, result: ToolResult, manner: Steps) -> CapturedTool:
    came = call.start.name, call.arguments, result.content, result.failed, result.sources
    cut = result.characters if result.cut else 0
    seconds = round(result.seconds, _DIGITS) if manner is True else 0.0
    return CapturedTool(*came, cut, seconds, call.said, call.order)


def _recorded(known: CapturedTool) -> ToolResult:
    result = ToolResult(known.content, known.failed, known.seconds, sources=(*known.sources,))
    characters = known.cut or len(result.text)
    return result._replace(characters=characters, cut=bool(known.cut))


def _say(show: Show, step: Json, said: list[str], text: str) -> None:
    said.append(text)
    show({**step, "state": "piece", "text": text})


def _step(call: RoundCall, number: int) -> Json:
    return {"id": call.start.id, "round": number, "tool": call.start.name}


def _told(result: ToolResult) -> Json:
    seconds = round(result.seconds, _DIGITS)
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
