"""What was recorded at one door plays at another: asks and answers are kept in chat's shape."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from adapters.protocol import Json
from middleware.wrappers.recall import MemoryStore
from tests.cassette.core.desk import REPLAYED, Desk, cassette, desk
from tests.support.door import Heard

RESPONSES = "/v1/responses"
LIVE = """
[upstreams.script]
kind = "scripted"
[models.m]
upstream = "script"
[[models.m.options.rules]]
when = "look at"
think = "I must see it."
say = "Let me look."
call = { name = "look", arguments = { city = "沈阳" } }
[[models.m.options.rules]]
when = "sunny"
say = "It is sunny."
"""
LOOK = {"type": "object", "properties": {"city": {"type": "string"}}}
CHAT_TOOL = {"type": "function", "function": {"name": "look", "parameters": LOOK}}
TOOL = {"type": "function", "name": "look", "parameters": LOOK}


async def chats(gateway: Desk, _: bool) -> list[Any]:
    """Two rounds at the door of chat completions."""
    said: list[Json] = [{"role": "user", "content": "look at 沈阳"}]
    body: Json = {"model": "m", "messages": said, "tools": [CHAT_TOOL]}
    turn = (await gateway.ask(body)).json()["choices"][0]["message"]
    told: list[Any] = [turn["content"], *_calls(turn)]
    said.append(turn)
    said += [
        {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}
        for call in turn.get("tool_calls", ())
    ]
    last = (await gateway.ask(body)).json()["choices"][0]["message"]
    return [*told, last["content"], *_calls(last)]


def _calls(message: Json) -> list[tuple[str, str]]:
    found = (call["function"] for call in message.get("tool_calls", ()))
    return [(one["name"], one["arguments"]) for one in found]


async def responses(gateway: Desk, stream: bool) -> list[Any]:
    """The same rounds at the door of responses; the second names the first."""
    first = _object(await _post(gateway, input="look at 沈阳", stream=stream))
    outputs = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "sunny"}
        for item in first["output"]
        if item["type"] == "function_call"
    ]
    assert outputs
    heard = await _post(gateway, input=outputs, previous_response_id=first["id"], stream=stream)
    return [*_said(first), *_said(_object(heard))]


async def _post(gateway: Desk, **fields: Any) -> Heard:
    heard = await gateway.post(RESPONSES, {"model": "m", "tools": [TOOL], **fields})
    assert heard.status == 200, heard.body
    return heard


def _object(heard: Heard) -> Json:
    body = heard.body
    if heard.headers["content-type"] != "application/json":
        body = heard.frames()[-1].split(b"data: ")[1]
    said: Json = orjson.loads(body)
    inner: Json = said.get("response", said)
    return inner


def _said(response: Json) -> list[Any]:
    items = response["output"]
    texts = [part["text"] for item in items for part in item.get("content", ())]
    calls = [(item["name"], item["arguments"]) for item in items if item["type"] == "function_call"]
    return ["".join(texts) or None, *calls]


Talk = Callable[[Desk, bool], Awaitable[list[Any]]]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("recorded", "played"), [(responses, chats), (chats, responses), (responses, responses)]
)
def test_a_conversation_plays_at_another_door(
    tmp_path: Path, recorded: Talk, played: Talk, stream: bool
) -> None:
    async def go() -> tuple[list[Any], list[Any]]:
        async with desk(tmp_path, LIVE, "record") as gateway:
            app = gateway.door.app
            app.use(replace(app.chat.runtime, answers=MemoryStore()))
            before = await recorded(gateway, stream)
        async with desk(tmp_path, REPLAYED, "replay") as gateway:
            return before, await played(gateway, stream)

    before, after = asyncio.run(go())
    assert after == before
    assert {*cassette(tmp_path).turns[0].body} >= {"model", "messages", "tools"}
