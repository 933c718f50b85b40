"""Asks by doors of other languages, verified: what only they can say is sent again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from adapters.protocol import Json
from middleware.cassettes.bridges import slim
from middleware.cassettes.cassette import Cassette
from middleware.cassettes.verify import verified
from tests.cassette.core.desk import REPLAYED, cassette, desk
from tests.support.day_one import Seen, answering, completion
from tests.support.upstreams.loopback import loopback

MODELS = """
[upstreams.claude]
kind = "claude"
base_url = "CLAUDE"
api_key = "k"
[upstreams.ollama]
kind = "ollama"
base_url = "OLLAMA"
[upstreams.plain]
kind = "compatible"
base_url = "PLAIN/v1"
api_key = "k"
[models.c]
upstream = "claude"
name = "claude-sonnet-4-5"
[models.o]
upstream = "ollama"
name = "qwen3"
[models.p]
upstream = "plain"
name = "p-1"
"""
MARK = {"cache_control": {"type": "ephemeral"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "EqQBCgIYAhIMsigned"}
MESSAGES: Json = {
    "model": "c",
    "max_tokens": 3000,
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: a=b;"},
        {"type": "text", "text": "Be brief.", **MARK},
    ],
    "thinking": {"type": "enabled", "budget_tokens": 1500},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [THOUGHT, {"type": "text", "text": "Hello."}]},
        {"role": "user", "content": [{"type": "text", "text": "again", **MARK}]},
    ],
}
OLLAMA: Json = {
    "model": "o",
    "stream": False,
    "keep_alive": "7m",
    "options": {"num_ctx": 16384, "top_k": 5},
    "messages": [{"role": "user", "content": "hi"}],
}
SAID = orjson.dumps(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "Hello."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
)
LINE = orjson.dumps(
    {
        "model": "qwen3",
        "message": {"role": "assistant", "content": "Hello."},
        "done": True,
        "done_reason": "stop",
    }
)
ASKS: Json = {
    "messages": ("/v1/messages", MESSAGES),
    "another's": ("/v1/messages", {**MESSAGES, "model": "p"}),
    "ollama": ("/api/chat", OLLAMA),
}


async def recorded(folder: Path, path: str, body: Json) -> Cassette:
    async with (
        loopback(answering(Seen(), lambda *_: ("200 OK", SAID))) as claude,
        loopback(answering(Seen(), lambda *_: ("200 OK", LINE))) as ollama,
        loopback(answering(Seen(), lambda *_: ("200 OK", completion("Hello.")))) as plain,
    ):
        text = MODELS.replace("CLAUDE", claude.url).replace("OLLAMA", ollama.url)
        async with desk(folder, text.replace("PLAIN", plain.url), "record") as gateway:
            sent = {"anthropic-beta": "context-management-2025-06-27"}
            heard = await gateway.post(path, body, **sent)
            assert heard.status == 200, heard.body
    return cassette(folder)


@pytest.mark.parametrize(("path", "body"), ASKS.values(), ids=ASKS)
def test_what_only_a_door_can_say_is_sent_again(tmp_path: Path, path: str, body: Json) -> None:
    found = asyncio.run(recorded(tmp_path, path, body))
    (turn,) = found.turns
    assert (turn.path, turn.own) == (path, body)
    assert asyncio.run(verified(found, "it")).drift == ()
    alone = replace(found, turns=(replace(turn, path="", own={}),))
    lost = [one.drift.kind for one in asyncio.run(verified(alone, "it")).drift]
    assert ("encode" in lost) is (body["model"] != "p")
    assert slim(found).turns[0].own == {}


def test_it_answers_at_another_door(tmp_path: Path) -> None:
    async def run() -> Any:
        await recorded(tmp_path, "/api/chat", OLLAMA)
        async with desk(tmp_path, REPLAYED, "replay") as gateway:
            return await gateway.ask({"model": "o", "messages": OLLAMA["messages"]})

    heard = asyncio.run(run())
    assert heard.headers["x-usetool-replay"] == "default turn=1 of=1"
    assert heard.json()["choices"][0]["message"]["content"] == "Hello."
