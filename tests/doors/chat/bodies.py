"""Bodies of requests and how they are refused, as the tests of them share."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.protocol import Json
from middleware.doors.chat.parse import ParsedChat, parse

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CUSTOM = {"type": "custom", "custom": {"name": "run"}}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "ok"}
OLD_CALL = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}}
OLD_RESULT = {"role": "function", "name": "f", "content": "ok"}


def body(**fields: Any) -> bytes:
    return orjson.dumps({"model": "m", "messages": [USER], **fields})


def ask(**fields: Any) -> ParsedChat:
    return parse(body(**fields))


def said(*messages: Any) -> Json:
    return {"messages": [USER, *messages]}


def refused(data: bytes) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        parse(data)
    return caught.value


words = st.sampled_from(
    (
        *("model", "messages", "role", "user", "assistant", "tool", "content", "tool_calls"),
        *("type", "function", "name", "f", "arguments", "{}", "tools", "stream", "stop", "id", "a"),
        *("function_call", "functions", "tool_choice", "stream_options", "text", "n", ""),
    )
)
