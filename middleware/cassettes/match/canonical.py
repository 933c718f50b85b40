"""The one form of an ask: whatever does not change its meaning is written in one way.

Of a chat: `model`, `messages`, `tools` by name in the order they were sent, and every other field
as it was given.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from adapters.protocol import CARRIED, RESULT_OF, ChatRequest, Json
from middleware.cassettes.match.values import (
    Form,
    JsonValue,
    arguments_value,
    normal,
    normal_text,
)

_TURN = frozenset({"role", "content", "tool_calls"})
# Of an assistant's turn, what only some clients send back.
_ECHOES = frozenset(
    {
        *("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "annotations"),
        *("provider_specific_fields", "extra_content", "parsed"),
    }
)
_PRIVATE = CARRIED | {RESULT_OF}
"""What doors tell leaves."""
_SAYS_NOTHING: Mapping[str, JsonValue] = {
    "parallel_tool_calls": True,
    "logprobs": False,
    "response_format": {"type": "text"},
}
"""Fields that mean the same as their absence on every upstream."""
_VECTORS = ("model", "input", "dimensions", "encoding_format", "user")


def canonical(request: ChatRequest, legacy: bool = False) -> Form:
    """The form of a chat that the door has read; `legacy`: it had `functions` instead of tools."""
    conversation = _Conversation()
    for message in request.messages:
        conversation.take(message)
    form: Form = {"model": request.model, "messages": conversation.messages}
    if request.call.streamed:
        form["stream"] = True
    if request.tools:
        form["tools"] = _tools(orjson.dumps(request.tools))
    if request.tool_choice not in (None, "auto"):
        form["tool_choice"] = request.tool_choice
    for name, value in (*request.params.items(), *request.extra.items()):
        if value is not None and _SAYS_NOTHING.get(name) != value:
            form[name] = normal(value)
    if legacy or not request.tools:
        # With `functions` the door itself says that one call comes at a time.
        form.pop("parallel_tool_calls", None)
    wanted = request.params.get("response_format", {})
    if "json_schema" in wanted:
        form["response_format"] = {**wanted, "json_schema": _meant(wanted["json_schema"])}
    return form


def canonical_embeddings(body: Json) -> Form:
    """The form of what the route for vectors has read; other fields go nowhere."""
    form: Form = {name: normal(body[name]) for name in _VECTORS if body.get(name) is not None}
    given = form.get("input")
    if isinstance(given, str) or (isinstance(given, list) and given and type(given[0]) is int):
        form["input"] = [given]
    if form.get("encoding_format") == "float":
        del form["encoding_format"]
    return form


@dataclass(slots=True)
class _Conversation:
    """Settled messages so far; results stand in the order of their calls."""

    messages: list[JsonValue] = field(default_factory=list)
    calls: int = 0
    waiting: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    """Id of a call of the last round → place of its result, its new id, the name of its tool."""

    def take(self, message: Json) -> None:
        role, content = message["role"], message.get("content")
        if role == "tool":
            self._take_result(message, content)
        elif role == "assistant":
            self._take_turn(message, content)
        elif role != "developer" and len(message) == 2 and type(content) is str:
            plain = "\r" not in content
            self.messages.append(message if plain else {**message, "content": normal_text(content)})
        else:
            role = "system" if role == "developer" else role
            said = _more(message, _TURN) | {"role": role, "content": _content(content)}
            self.messages.append(said)

    def _take_result(self, message: Json, content: Any) -> None:
        place, identity, name = self.waiting[message["tool_call_id"]]
        said: Form = {"role": "tool", "tool_call_id": identity, "content": _content(content)}
        if len(message) > 3:
            said = _more(message, said.keys()) | said
            if said.get("name") == name:  # some clients repeat it
                del said["name"]
        self.messages[place] = said

    def _take_turn(self, message: Json, content: Any) -> None:
        said: Form = {"role": "assistant"}
        if content and (spoken := _content(content)):
            said["content"] = spoken
        if not message.keys() <= _TURN:
            said |= _more(message, _TURN | _ECHOES)
        self.messages.append(said)
        if calls := message.get("tool_calls"):
            self.waiting = {}
            said["tool_calls"] = [self._call(call) for call in calls]
            self.messages += [None] * len(calls)

    def _call(self, call: Json) -> Form:
        self.calls += 1
        identity = f"call#{self.calls}"
        kind = call["type"]
        called = call[kind]
        name = called["name"]
        self.waiting[call["id"]] = (len(self.messages) + len(self.waiting), identity, name)
        if kind != "function":
            return {"id": identity, "type": kind, kind: normal(called)}
        value = arguments_value(called["arguments"])
        return {"id": identity, "type": kind, kind: {"name": name, "arguments": value}}


def _more(said: Json, told: Container[str] = ()) -> Form:
    """What a message or a part says beside."""
    if not _PRIVATE.isdisjoint(said):
        said = {name: value for name, value in said.items() if name not in _PRIVATE}
    return {k: normal(v) for k, v in said.items() if k not in told and v is not None}


def _content(content: Any) -> JsonValue:
    """A text is the same as one part of text."""
    if isinstance(content, str):
        return normal_text(content)
    if content is None:
        return None
    parts: list[JsonValue] = [_part(part) for part in content]
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, dict) and only.keys() == {"type", "text"}:
        return only["text"]
    return parts


def _part(part: Json) -> Form:
    return {
        name: _more(value) if isinstance(value, dict) else normal(value)
        for name, value in part.items()
        if value is not None
    }


@lru_cache(maxsize=8)
def _tools(dumped: bytes) -> Form:
    """By name, in the order they were sent; clients send the same ones with every ask."""
    return {tool[tool["type"]]["name"]: _tool(tool) for tool in orjson.loads(dumped)}


def _tool(tool: Json) -> Form:
    kind = tool["type"]
    beside = {name: value for name, value in tool.items() if name not in ("type", kind)}
    form = _meant(beside | tool[kind])
    del form["name"]
    return form if kind == "function" else form | {"type": kind}


def _meant(schema: Json) -> Form:
    """The members of a tool or of a format that say something."""
    return {
        name: normal(value)
        for name, value in schema.items()
        if value is not None and not (name == "strict" and value is False)
    }
