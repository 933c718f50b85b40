"""Requests that were sent to a gateway and kept, as the tests of it share."""

from __future__ import annotations

import asyncio
from contextlib import redirect_stdout
from io import StringIO

from middleware.__main__ import main
from tests.support.day_one import Json, failure

SERVER_KEY, OTHER_KEY = "gate-canary-1111", "gate-canary-2222"
UPSTREAM_KEY, HEADER, PROXY_WORD = "up-canary-3333", "head-canary-4444", "word-canary-5555"
BODY_KEY, STRAY_KEY = "body-canary-6666", "sk-stray-canary-7777"
ENVIRONMENT = {"GATE": SERVER_KEY, "GATE2": OTHER_KEY, "UP_KEY": UPSTREAM_KEY, "UP_HEAD": HEADER}
TEXT = """
[server]
keys = ["env:GATE", "env:GATE2"]
[upstreams.relay]
kind = "compatible"
base_url = "URL/v1"
api_key = "env:UP_KEY"
headers = { x-team-token = "env:UP_HEAD" }
[models.agent]
upstream = "relay"
name = "relay-model"
tools = "native"
"""
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
AGENT_RUN: Json = {
    "model": "agent",
    "messages": [
        {"role": "user", "content": f"it's my key: {STRAY_KEY}"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "look", "arguments": "{}"},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "$(echo no) `no` 5'11\""},
    ],
    "tools": [TOOL],
    "api_key": BODY_KEY,
}


def refusing(path: str, head: str, body: Json) -> tuple[str, bytes]:
    words = f"messages.2: no; your key {UPSTREAM_KEY} was {HEADER}"
    return "400 Bad Request", failure(words)


async def line(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    with redirect_stdout(out):
        code = await asyncio.to_thread(main, arguments)
    return code, out.getvalue()


DEMO = '[upstreams.demo]\nkind = "scripted"\n[models.demo]\nupstream = "demo"\n'
