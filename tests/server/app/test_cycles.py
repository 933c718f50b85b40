"""A request that is over holds nothing of itself: its memory is free at once.

The collector seldom runs (`serving.py`), so what only it can free stays for thousands of requests.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter

import pytest

from adapters.protocol import (
    Adapter,
    Finish,
    Json,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from middleware.wrappers.emulation.emulated import EmulatedTools
from middleware.wrappers.emulation.rescue import LeakRescue
from tests.support.adapters import FakeAdapter, repeating
from tests.support.door import OPENED, USER, Door, door
from tests.support.text_only import OSLO, TOOLS

END = Finish("stop", Usage(1, 2))
TEXT = "So.\nAnd `then` {1}.\n"


def said() -> FakeAdapter:
    calls = (ToolCallStart(0, "call_1", "get_weather"), ToolCallDelta(0, '{"city":"Oslo"}'))
    return repeating(OPENED, ReasoningDelta("hm"), TextDelta(TEXT), *calls, END)


MODELS: dict[str, Adapter] = {
    "native": said(),
    "rescued": LeakRescue(said()),
    "emulated": EmulatedTools(repeating(OPENED, TextDelta(TEXT), TextDelta(OSLO), END)),
}
MESSAGES: Json = {"messages": [USER], "max_tokens": 9}
NATIVE = [{"name": "get_weather", "input_schema": {"type": "object"}}]
BODIES: dict[str, Json] = {
    "/v1/chat/completions": {**MESSAGES, "tools": TOOLS},
    "/v1/messages": {**MESSAGES, "tools": NATIVE},
    "/v1/responses": {"input": "hi", "tools": [{"type": "function", "name": "get_weather"}]},
    "/api/chat": {"messages": [USER], "tools": TOOLS},
}


async def left_by(app: Door, path: str, body: Json) -> Counter[str]:
    """Objects of ours that only the collector frees, by their types."""
    heard = await app.ask(body, path=path)  # the first request of a kind loads modules
    assert heard.status == 200
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        await app.ask(body, path=path)
        await asyncio.sleep(0)
        gc.collect()
        kinds = Counter(type(one).__module__ + "." + type(one).__name__ for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    return Counter({kind: n for kind, n in kinds.items() if kind.startswith(("adapters", "middl"))})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("path", BODIES)
def test_a_request_leaves_no_cycles(path: str, model: str, stream: bool) -> None:
    body = {"model": model, "stream": stream, **BODIES[path]}
    assert not asyncio.run(left_by(door(MODELS), path, body))
