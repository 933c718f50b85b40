"""A request that is over holds nothing of itself: its memory is free at once.

The collector seldom runs (`serving.py`), so what only it can free stays for thousands of requests.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from pathlib import Path

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
from middleware.server.visits import TOGETHER
from middleware.wrappers.emulation.emulated import EmulatedTools
from middleware.wrappers.emulation.rescue import LeakRescue
from tests.accounts.counting import KEY, counting
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
KEEPS_NONE = "keep_last = 0"
"""Else what is over is held by the record of the last requests."""
MESSAGES: Json = {"messages": [USER], "max_tokens": 9}
NATIVE = [{"name": "get_weather", "input_schema": {"type": "object"}}]
BODIES: dict[str, Json] = {
    "/v1/chat/completions": {**MESSAGES, "tools": TOOLS},
    "/v1/messages": {**MESSAGES, "tools": NATIVE},
    "/v1/responses": {"input": "hi", "tools": [{"type": "function", "name": "get_weather"}]},
    "/api/chat": {"messages": [USER], "tools": TOOLS},
}


async def left_by(app: Door, path: str, body: Json, *headers: tuple[str, str]) -> Counter[str]:
    """Objects of ours that only the collector frees, by their types."""
    heard = await app.ask(body, path=path, headers=headers)  # the first of a kind loads modules
    assert heard.status == 200
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(TOGETHER):  # so long log, metrics and ledger wait for more
            await app.ask(body, path=path, headers=headers)
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
    assert not asyncio.run(left_by(door(MODELS, KEEPS_NONE), path, body))


SERVER = f"[server]\n{KEEPS_NONE}\n"
LIMITS = """
requests_per_minute = 90
tokens_per_minute = 90000
concurrent = 3
budget = "9 USD/day"
"""


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("mode", ["off", "record", "replay"])
@pytest.mark.parametrize("path", BODIES)
def test_a_request_that_is_counted_and_recorded_leaves_no_cycles(
    tmp_path: Path, path: str, mode: str, stream: bool
) -> None:
    folder = f'[cassettes]\nfolder = "{tmp_path}"\n'
    app = counting(LIMITS, f'{SERVER}{folder}mode = "{mode}"\n', tmp_path / "usage.db")
    body = {"model": "demo", "stream": stream, **BODIES[path]}
    if mode == "replay":
        asyncio.run(_recorded(counting("", f'{folder}mode = "record"\n'), path, body))
    assert not asyncio.run(left_by(app, path, body, KEY))


async def _recorded(app: Door, path: str, body: Json) -> None:
    for _ in range(2):
        await app.ask(body, path=path, headers=[KEY])
    studio = app.app.chat.runtime.studio
    assert studio is not None
    await asyncio.to_thread(studio.recorder.finish)
