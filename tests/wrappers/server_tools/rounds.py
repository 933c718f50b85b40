"""A model that calls tools, and what the wrapper makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from adapters.protocol import (
    ChatRequest,
    Event,
    Finish,
    Journey,
    Json,
    Opened,
    RequestContext,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
    Usage,
)
from middleware.wrappers.recall import MemoryStore, Store
from middleware.wrappers.server_tools import ServerTools, ServerToolSettings
from tests.support.adapters import FakeAdapter, Script
from tests.support.fold import Answer, fold, run
from tests.support.tools import FakeShelf, declared

USER: Json = {"role": "user", "content": "what is it like?"}
CLIENT_TOOL = declared("mine")
OPENED = Opened((), Upstream("up"))
Call = tuple[str, str, str]
"""Id, name and arguments."""


def calling(*calls: Call, text: str = "", reason: Any = "tool_calls") -> tuple[Event, ...]:
    """An answer with calls."""
    events: list[Event] = [OPENED]
    events += [TextDelta(text)] if text else []
    for index, (identity, name, arguments) in enumerate(calls):
        events += [ToolCallStart(index, identity, name), ToolCallDelta(index, arguments)]
    return (*events, Finish(reason, Usage(10, 1)))


def saying(text: str, reason: Any = "stop") -> tuple[Event, ...]:
    return (OPENED, TextDelta(text), Finish(reason, Usage(20, 2)))


def wrapped(
    model: FakeAdapter,
    shelf: FakeShelf,
    store: Store | None = None,
    thinks: bool | None = None,
    **settings: Any,
) -> ServerTools:
    said = ServerToolSettings("m", **{"patterns": ("*",), **settings})
    says = None if thinks is None else lambda _: thinks
    return ServerTools(model, shelf, said, store or MemoryStore(), says)


def asked(*messages: Json, owner: str = "me", **fields: Any) -> ChatRequest:
    call = RequestContext("req_1", owner=owner, journey=Journey())
    return replace(ChatRequest("up", messages or (USER,), call=call), **fields)


def answer(adapter: ServerTools, request: ChatRequest | None = None) -> Answer:
    return run(fold(adapter.stream(request or asked())))


def rounds(shelf: FakeShelf, *answers: Script, **settings: Any) -> tuple[Answer, FakeAdapter]:
    """What a client without tools gets, and the model that was asked."""
    model = FakeAdapter(*answers)
    return answer(wrapped(model, shelf, **settings)), model


def echo(got: Answer) -> Json:
    """The turn as a client sends it back."""
    calls = [
        {"id": identity, "type": kind, kind: {"name": name, "arguments": arguments}}
        for identity, name, kind, arguments in got.calls
    ]
    message: Json = {"role": "assistant", "content": got.text or None}
    return {**message, "tool_calls": calls} if calls else message


def result(identity: str, content: str) -> Json:
    return {"role": "tool", "tool_call_id": identity, "content": content}


def said(messages: Sequence[Json]) -> list[tuple[str, Any]]:
    """Who said what, with calls by their names."""
    found: list[tuple[str, Any]] = []
    for message in messages:
        names = [call["function"]["name"] for call in message.get("tool_calls") or ()]
        told = message["content"] if not names else (message["content"], *names)
        found.append((message["role"], told))
    return found
