"""The app asked once with a script, as the tests of it share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from adapters.protocol import Json, Opened, Upstream
from adapters.receipts import Note
from middleware.doors.door import PING
from tests.support.adapters import Step, repeating
from tests.support.door import Heard, door

FULL = Opened(
    (Note("temperature_dropped", "temperature", "the model has none"),),
    Upstream(
        "up",
        "claude-x",
        "req_up",
        {"x-upstream-request-id": "req_up", "x-ratelimit-remaining-requests": "9"},
    ),
)
SECRET = "sk-secret-key-of-a-client"
TINY = "heartbeat = 0.02"


def play(script: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(script(), 60))


def asked(*steps: Step, server: str = "", **fields: Any) -> Heard:
    """Ask a model with this script once."""

    async def script() -> Heard:
        return await door(repeating(*steps), server).chat(**fields)

    heard: Heard = play(script)
    return heard


def seen(frames: list[bytes]) -> list[str]:
    """A stream in words: role, text, finish, error, done, ping."""
    return [_word(frame) for frame in frames]


def _word(frame: bytes) -> str:
    if frame + b"\n\n" == PING:
        return "ping"
    if frame == b"data: [DONE]":
        return "done"
    said = orjson.loads(frame.removeprefix(b"data: "))
    if "error" in said:
        return "error"
    if not said["choices"]:
        return "usage"
    choice = said["choices"][0]
    return "finish" if choice["finish_reason"] else next(iter(choice["delta"]))


def error_in(frame: bytes) -> Json:
    error: Json = orjson.loads(frame.removeprefix(b"data: "))["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error
