"""What the tests of requests to OpenAI-compatible servers share."""

from __future__ import annotations

from typing import Any

from adapters.compatible import encode
from adapters.compatible.dialect import Dialect
from adapters.protocol import ChatRequest, Json
from tests.support.dialogue import user

COMMON = Dialect()
FULL = Dialect(custom_tools=True, allowed_tools=True, developer_role=True)
HELLO = (user("hello"),)
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def tool(name: str, parameters: Json | None = None, **members: Any) -> Json:
    function = {"name": name, "description": "It works.", "parameters": parameters or CITY}
    return {"type": "function", "function": {**function, **members}}


def request(**given: Any) -> ChatRequest:
    return ChatRequest(**{"model": "their-model", "messages": HELLO, **given})


def written(spoken: Dialect = COMMON, **given: Any) -> tuple[Json, list[tuple[str, str]]]:
    body, receipt, _ = encode(request(**given), spoken)
    return body, [(note.code, note.field) for note in receipt]
