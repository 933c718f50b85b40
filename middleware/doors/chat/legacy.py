"""OpenAI's first way of calling: `functions`, `function_call`, role `function` → tools.

Only requests are upgraded here; the answer is written back in the old words by `chunks` and `fold`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from adapters.errors import BadRequest
from adapters.protocol import Json
from adapters.receipts import Notes


def is_used(data: Json) -> bool:
    """Whether anything in the request is said the old way; SDKs echo `function_call: null`."""
    return (
        data.get("functions") is not None
        or data.get("function_call") is not None
        or any(m["role"] == "function" or m.get("function_call") for m in data["messages"])
    )


def modern(data: Json, repair: bool, notes: Notes) -> Json:
    """The same request in today's words; one call at a time, as they had it."""
    modern = {**data, "messages": list(_upgraded(data["messages"], repair))}
    functions, choice = modern.pop("functions", None), modern.pop("function_call", None)
    if functions is None:
        _require_no_choice(choice, notes)
        return {**modern, "tool_choice": "none"} if choice == "none" else modern
    if data.get("tools"):
        raise BadRequest(
            "The request has both 'tools' and 'functions'. Send 'tools' alone: 'functions' is what "
            "they were called before.",
            param="functions",
        )
    modern["tools"] = [{"type": "function", "function": function} for function in functions]
    modern["parallel_tool_calls"] = False
    if isinstance(choice, dict):
        _require_known(choice["name"], functions)
        choice = {"type": "function", "function": {"name": choice["name"]}}
    return {**modern, "tool_choice": choice}


def _require_no_choice(choice: str | Json | None, notes: Notes) -> None:
    if isinstance(choice, dict):
        raise BadRequest(
            "'function_call' names a function, but the request has no 'functions'. Send them, or "
            "leave 'function_call' out.",
            param="function_call",
        )
    if choice not in (None, "none"):
        notes.add("tool_choice_ignored", "function_call", "the request has no functions")


def _require_known(name: str, functions: list[Json]) -> None:
    if name not in [function["name"] for function in functions]:
        raise BadRequest(
            f"'function_call' names the function {name!r}, which is not in 'functions'.",
            param="function_call.name",
        )


class _Called(NamedTuple):
    """A call that waits for its result."""

    name: str
    identity: str
    where: str


def _upgraded(messages: list[Json], repair: bool) -> Iterator[Json]:
    """Give every old call an id and its result the same one."""
    called: _Called | None = None
    for position, message in enumerate(messages):
        if message["role"] == "function":
            yield _as_result(message, f"messages[{position}]", called, repair)
            called = None
        elif message["role"] == "assistant":
            _require_result(called, repair)
            called = _call_of(message, position)
            yield _with_tool_call(message, called) if called else message
        else:
            yield message
    _require_result(called, repair)


def _call_of(message: Json, position: int) -> _Called | None:
    if not message.get("function_call"):
        return None
    # The id is made of what stands before it alone: the same in every later turn.
    name = message["function_call"]["name"]
    return _Called(name, _identity(position, name), f"messages[{position}]")


def _with_tool_call(message: Json, called: _Called) -> Json:
    if message.get("tool_calls"):
        raise BadRequest(
            f"'{called.where}' has both 'tool_calls' and 'function_call'. Send 'tool_calls' alone.",
            param=f"{called.where}.function_call",
        )
    rest = {name: value for name, value in message.items() if name != "function_call"}
    call = {"id": called.identity, "type": "function", "function": message["function_call"]}
    return {**rest, "tool_calls": [call]}


def _as_result(message: Json, where: str, called: _Called | None, repair: bool) -> Json:
    name = message["name"]
    if called is None or called.name != name:
        if not repair:
            raise BadRequest(
                f"'{where}' has role 'function', but the assistant message before it did not call "
                f"{name!r} in its 'function_call'. Send each result right after its call.",
                param=f"{where}.name",
                code="invalid_tool_history",
            )
        called = _Called(name, _identity(0, where), where)
    content = message.get("content") or ""
    return {"role": "tool", "tool_call_id": called.identity, "content": content}


def _require_result(called: _Called | None, repair: bool) -> None:
    if called is not None and not repair:
        raise BadRequest(
            f"'{called.where}' has a 'function_call', but no message with role 'function' and name "
            f"{called.name!r} follows it. Send the function's result.",
            param=f"{called.where}.function_call",
            code="invalid_tool_history",
        )


def _identity(position: int, name: str) -> str:
    return "call_" + hashlib.sha256(f"{position}/{name}".encode()).hexdigest()[:24]
