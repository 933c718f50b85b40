"""Conversations for tests: messages, scripted answers, and what clients do to a history."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from adapters.protocol import (
    ChatRequest,
    Event,
    Finish,
    Json,
    Opened,
    ReasoningDelta,
    RequestContext,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
    Usage,
)

OPENED = Opened((), Upstream("scripted"))
USAGE = Usage(1, 1)
Said = tuple[str, str, str]
"""Id, name and arguments of a call."""


def answer(
    thought: str = "",
    text: str = "",
    said: Sequence[Said] = (),
    turn: Json | None = None,
    usage: Usage | None = USAGE,
) -> list[Event]:
    events: list[Event] = [OPENED]
    events += [ReasoningDelta(thought)] if thought else []
    events += [TextDelta(text)] if text else []
    for index, (identity, name, arguments) in enumerate(said):
        events += [ToolCallStart(index, identity, name), ToolCallDelta(index, arguments)]
    return [*events, Finish("tool_calls" if said else "stop", usage, turn=turn)]


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def assistant(text: str | None = None, *said: Said) -> Json:
    message: Json = {"role": "assistant", "content": text}
    if said:
        message["tool_calls"] = [
            {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}
            for identity, name, arguments in said
        ]
    return message


def result(identity: str, text: str) -> Json:
    return {"role": "tool", "tool_call_id": identity, "content": text}


def request(*messages: Json, model: str = "m", client: str = "a") -> ChatRequest:
    return ChatRequest(model, messages, call=RequestContext(owner=client))


def rebuilt(messages: Sequence[Json], mint: Callable[[], str]) -> list[Json]:
    """A history as Dify's in-app agent makes it: new ids, `\\u` escapes, one input a tool name."""
    out: list[Json] = []
    for position, message in enumerate(messages):
        if message.get("tool_calls"):
            out += _rebuilt_round(message, messages[position + 1 :], mint)
        elif message["role"] != "tool":
            out.append(message)
    return out


def _rebuilt_round(turn: Json, behind: Sequence[Json], mint: Callable[[], str]) -> Iterator[Json]:
    names = {call["id"]: call["function"]["name"] for call in turn["tool_calls"]}
    inputs = {
        call["function"]["name"]: json.loads(call["function"]["arguments"])
        for call in turn["tool_calls"]
    }
    outputs = {
        names[message["tool_call_id"]]: message["content"] for message in behind[: len(names)]
    }
    ids = [(mint(), name) for name in names.values()]
    said = [(identity, name, json.dumps(inputs[name])) for identity, name in ids]
    yield assistant(turn["content"] or "", *said)
    for identity, name in ids:
        yield result(identity, outputs[name])
