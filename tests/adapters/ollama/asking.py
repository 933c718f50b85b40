"""Requests as Ollama gets them, as the tests of them share."""

from __future__ import annotations

import json
from typing import Any

import orjson

from adapters.ollama.abilities import Abilities
from adapters.ollama.encode import Options, encode
from adapters.ollama.window import needed
from adapters.protocol import ChatRequest, Json, RequestContext
from adapters.receipts import Receipt
from adapters.shared.history import settle
from adapters.shared.toolbox import toolbox

ABLE = Abilities(tools=True, thinking=True, vision=True, context_length=32768)
USUAL = Options()
USER: Json = {"role": "user", "content": "hi"}


def tool(name: str = "get_weather", **parameters: Any) -> Json:
    found = parameters or {"type": "object", "properties": {"city": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "parameters": found}}


def encoded(
    *messages: Json,
    able: Abilities = ABLE,
    options: Options = USUAL,
    streamed: bool = True,
    **fields: Any,
) -> tuple[Json, Receipt]:
    """Encode, and read the body as the server will."""
    request = asked(*messages, streamed=streamed, **fields)
    body, receipt, _ = encode(request, toolbox(request), able, options)
    return json.loads(orjson.dumps(body)), receipt


def asked(*messages: Json, streamed: bool = True, **fields: Any) -> ChatRequest:
    return ChatRequest(
        model=fields.pop("model", "qwen3:4b"),
        messages=settle(messages or (USER,))[0],
        tools=tuple(fields.pop("tools", ())),
        tool_choice=fields.pop("tool_choice", None),
        extra=fields.pop("extra", {}),
        native=fields.pop("native", None),
        params=fields,
        call=RequestContext(streamed=streamed),
    )


def size(*messages: Json, **fields: Any) -> int:
    """How many tokens it is said to need."""
    request = asked(*messages, **fields)
    body, _, pictures = encode(request, toolbox(request), ABLE, USUAL)
    return needed(body, pictures)


def body(*messages: Json, **fields: Any) -> Json:
    return encoded(*messages, **fields)[0]


def codes(receipt: Receipt) -> list[str]:
    return [note.code for note in receipt]


def call(identity: str, arguments: str, name: str = "get_weather") -> Json:
    return {
        "id": identity,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


ROUND: tuple[Json, ...] = (
    USER,
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "two",
        "tool_calls": [call("c1", '{"n": 1.10, "city": "\\u6c88"}'), call("c2", "")],
    },
    {"role": "tool", "tool_call_id": "c2", "content": "b"},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a"}]},
)
