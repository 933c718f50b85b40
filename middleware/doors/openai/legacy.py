"""OpenAI's first way of calling: `functions`, `function_call`, role `function` → tools.

Only requests are upgraded here; the answer is written back in the old words by `chunks` and `fold`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from adapters.errors import BadRequest
from adapters.protocol import Json


def tools_of(functions: list[Json]) -> list[Json]:
    return [{"type": "function", "function": function} for function in functions]


def choice_of(function_call: Any) -> Any:
    if isinstance(function_call, dict):
        return {"type": "function", "function": {"name": function_call["name"]}}
    return function_call


def upgrade(messages: list[Json]) -> list[Json]:
    """Give every old call an id and its result the same one.

    The id depends on what came before, so it is the same in every later turn.
    """
    return list(_upgraded(messages))


def _upgraded(messages: list[Json]) -> Iterator[Json]:
    waiting: list[tuple[str, str]] = []
    for position, message in enumerate(messages):
        call = message.get("function_call")
        if message["role"] == "assistant" and call:
            identity = _identity(position, call["name"])
            waiting.append((call["name"], identity))
            yield _with_tool_call(message, call, identity)
        elif message["role"] == "function":
            yield {
                "role": "tool",
                "tool_call_id": _answered(waiting, message["name"], position),
                "content": message.get("content") or "",
            }
        else:
            yield message


def _with_tool_call(message: Json, call: Json, identity: str) -> Json:
    rest = {name: value for name, value in message.items() if name != "function_call"}
    rest["tool_calls"] = [{"id": identity, "type": "function", "function": call}]
    return rest


def _identity(position: int, name: str) -> str:
    return "call_" + hashlib.sha256(f"{position}/{name}".encode()).hexdigest()[:24]


def _answered(waiting: list[tuple[str, str]], name: str, position: int) -> str:
    for entry in waiting:
        if entry[0] == name:
            waiting.remove(entry)
            return entry[1]
    raise BadRequest(
        f"'messages[{position}]' has role 'function' but no earlier assistant message called "
        f"'{name}' in its 'function_call'.",
        param=f"messages[{position}].name",
        code="invalid_tool_history",
    )
