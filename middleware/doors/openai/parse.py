"""Body → `ChatRequest`: the one place where a request is validated."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import ValidationError

from adapters.errors import BadRequest
from adapters.history import settle
from adapters.protocol import Call, ChatRequest, Json, Note, Receipt
from middleware.doors.openai import legacy
from middleware.doors.openai.mistakes import refusal
from middleware.doors.openai.shapes import FIELDS, REQUEST

MAX_DEPTH = 64
# Dots too, which OpenAI refuses: tools of MCP servers and benchmarks are called `server.tool`, and
# emulated models take any name; for native ones `toolbox.alias` makes one of OpenAI's alphabet.
_ASCII_NAME = re.compile(r"[a-zA-Z0-9_.-]+")
_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
# What the door itself takes care of; everything else of OpenAI's goes on in `params`.
_OWN = frozenset(
    (
        *("model", "messages", "tools", "tool_choice", "stream", "stream_options"),
        *("functions", "function_call", "n"),
    )
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and what its answer must look like."""

    request: ChatRequest
    receipt: Receipt = ()
    """What the door itself changed or lost."""
    usage_chunk: bool = False
    legacy: bool = False
    """The client calls functions the old way."""


def parse(body: bytes, *, repair: bool = False, call: Call | None = None) -> Asked:
    """Read a chat request or raise a `BadRequest` that says what to send instead."""
    data = _object(body)
    try:
        REQUEST.validate_python(data)
    except ValidationError as error:
        raise refusal(error) from None
    notes: list[Note] = []
    old = data.get("functions") is not None or any("function_call" in m for m in data["messages"])
    if old or any(message["role"] == "function" for message in data["messages"]):
        data = _modern(data)
    for check in _CHECKS:
        check(data)
    messages, changed = settle(data["messages"], repair)
    notes += changed
    streamed = data.get("stream") is True
    request = ChatRequest(
        model=data["model"],
        messages=messages,
        tools=tuple(data.get("tools") or ()),
        tool_choice=_choice(data, notes),
        params={k: v for k, v in data.items() if k in FIELDS and k not in _OWN and v is not None},
        extra={k: v for k, v in data.items() if k not in FIELDS},
        call=Call(call.id, call.client, call.deadline, streamed, call.key, call.kept)
        if call
        else Call(streamed=streamed),
    )
    options = data.get("stream_options") or {}
    return Asked(request, tuple(notes), streamed and options.get("include_usage") is True, old)


def _object(body: bytes) -> Json:
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(
            f"The request body is not valid JSON: {error}. Send a JSON object in UTF-8.",
            code="invalid_json",
        ) from None
    if not isinstance(data, dict):
        raise BadRequest("The request body must be a JSON object.", code="invalid_type")
    if _may_be_deep(body) and _depth_exceeds(data, MAX_DEPTH):
        raise BadRequest(
            f"The request body is nested more than {MAX_DEPTH} levels deep. Flatten it.",
            code="invalid_value",
        )
    return data


def _may_be_deep(body: bytes) -> bool:
    """Cheap no for ordinary bodies: a run of more openers than that must exist somewhere."""
    brackets = body.translate(None, _BRACKETS)
    for _ in range(MAX_DEPTH):
        shorter = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(shorter) == len(brackets):
            break
        brackets = shorter
    return len(brackets) > 0


def _depth_exceeds(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _modern(data: Json) -> Json:
    """The same request without the legacy fields; one call at a time, as they had it."""
    data = {**data, "messages": legacy.upgrade(data["messages"])}
    functions = data.pop("functions", None)
    choice = data.pop("function_call", None)
    if functions and not data.get("tools"):
        data["tools"] = legacy.tools_of(functions)
        data["tool_choice"] = legacy.choice_of(choice)
        data["parallel_tool_calls"] = False
    return data


def _choice(data: Json, notes: list[Note]) -> Any:
    choice = data.get("tool_choice")
    if choice in ("none", "auto") and not data.get("tools"):
        notes.append(Note("tool_choice_ignored", "tool_choice", "the request has no tools"))
        return None
    return choice


def _check_single_choice(data: Json) -> None:
    if (data.get("n") or 1) > 1:
        raise BadRequest(
            "'n' greater than 1 is not supported: send the request n times instead.",
            code="unsupported_parameter",
            param="n",
        )


def _check_stream_options(data: Json) -> None:
    if data.get("stream_options") is not None and data.get("stream") is not True:
        raise BadRequest(
            "'stream_options' is only allowed with 'stream': true. Leave it out of plain requests.",
            param="stream_options",
        )


def _check_logprobs(data: Json) -> None:
    if data.get("top_logprobs") and data.get("logprobs") is not True:
        raise BadRequest("'top_logprobs' needs 'logprobs': true.", param="top_logprobs")


def _check_tools(data: Json) -> None:
    names = set()
    for position, tool in enumerate(data.get("tools") or ()):
        kind = tool.get("type", "function")
        name = tool[kind]["name"]
        where = f"tools[{position}].{kind}.name"
        if name.isascii() and not _ASCII_NAME.fullmatch(name):
            raise BadRequest(
                f"Invalid '{where}': it may contain only letters, digits, '_', '-' and '.', "
                f"not {name!r}.",
                param=where,
            )
        if name in names:
            raise BadRequest(
                f"Two tools have the name '{name}' (the second is '{where}'). Tool names must be "
                "unique.",
                param=where,
            )
        names.add(name)


def _check_choice(data: Json) -> None:
    choice, tools = data.get("tool_choice"), data.get("tools")
    if choice in (None, "none", "auto"):
        return
    if not tools:
        raise BadRequest(
            "'tool_choice' asks for a tool call, but the request has no 'tools'. Send the tools, "
            "or leave 'tool_choice' out.",
            param="tool_choice",
        )
    known = {tool[tool["type"]]["name"] for tool in tools}
    for name in _chosen(choice):
        if name not in known:
            raise BadRequest(
                f"'tool_choice' names the tool {name!r}, which is not in 'tools'.",
                param="tool_choice",
            )


def _chosen(choice: Any) -> list[str]:
    if isinstance(choice, str):
        return []
    if choice["type"] == "allowed_tools":
        return [tool[tool["type"]]["name"] for tool in choice["allowed_tools"]["tools"]]
    return [choice[choice["type"]]["name"]]


_CHECKS: tuple[Callable[[Json], None], ...] = (
    _check_single_choice,
    _check_stream_options,
    _check_logprobs,
    _check_tools,
    _check_choice,
)
