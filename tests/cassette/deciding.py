"""Answers as cassettes hold them, and asks whose tools they call."""

from __future__ import annotations

import json
from typing import Any

from adapters.protocol import Json
from middleware.cassettes.cassette import CassetteTurn, RecordedAnswer

TEXT: Json = {"type": "string"}


def tool(name: str, required: tuple[str, ...] = (), **properties: Json) -> Json:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


ASK: Json = {
    "model": "old",
    "messages": [{"role": "user", "content": "Book it."}],
    "tools": [
        tool("book", ("seat",), seat={"type": "integer"}, class_={"enum": ["first", "second"]}),
        tool("find", ("words",), words=TEXT, most={"type": "integer"}, filter={}),
        tool("wait"),
    ],
}
SHAPED: Json = {
    "model": "old",
    "messages": [{"role": "user", "content": "Report."}],
    "response_format": {
        "type": "json_schema",
        "json_schema": {
            "name": "report",
            "schema": {
                "type": "object",
                "properties": {"seat": {"type": "integer"}, "note": TEXT},
                "required": ["seat"],
            },
        },
    },
}
NO: Json = {"message": "no", "type": "api_error", "param": None, "code": "upstream_error"}


def said(text: str | None = None, *calls: tuple[str, Any], **more: Any) -> RecordedAnswer:
    """An answer; arguments are values, or the text a model wrote."""
    message: Json = {"role": "assistant", "content": text, **more}
    if calls:
        message["tool_calls"] = [_call(at, *call) for at, call in enumerate(calls)]
    return RecordedAnswer(message=message, finish_reason="tool_calls" if calls else "stop")


def _call(at: int, name: str, arguments: Any) -> Json:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": text}}


def failed(status: int = 500, **more: Any) -> RecordedAnswer:
    return RecordedAnswer(status, error=NO | more)


def turn(number: int, answer: RecordedAnswer, ask: Json = ASK, **more: Any) -> CassetteTurn:
    return CassetteTurn(number, {**ask, **more}, answer)
