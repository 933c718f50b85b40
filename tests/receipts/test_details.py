"""Every member of a message and of a tool is carried, or named, or refused."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from adapters.protocol import Json
from tests.receipts.sending import SCHEMA, every_upstream, send, tool
from tests.support.recordings import Upstream

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"


# Every member of a message and of a tool -------------------------------------------------------


CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "cold"}
USER = {"role": "user", "content": "How cold?"}
BARE: Json = {"messages": [USER, CALLED, RESULT, USER], "tools": [tool()]}


def part(kind: str, value: Any, **more: Any) -> Callable[[Json], None]:
    def change(body: Json) -> None:
        said = {"type": kind, kind: value, **more}
        body["messages"][3] = {"role": "user", "content": [{"type": "text", "text": "?"}, said]}

    return change


def member(position: int, **members: Any) -> Callable[[Json], None]:
    def change(body: Json) -> None:
        body["messages"][position] = {**body["messages"][position], **members}

    return change


def with_tools(*tools: Json, **members: Any) -> Callable[[Json], None]:
    def change(body: Json) -> None:
        body.update(tools=list(tools), **members)

    return change


def inserted(position: int, message: Json) -> Callable[[Json], None]:
    return lambda body: body["messages"].insert(position, message)


BLOCKS = [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]
DETAILS: Mapping[str, Callable[[Json], None]] = {
    "a name of a user": member(0, name="Ann"),
    "a name of an assistant": member(1, name="Bot"),
    "thoughts": member(1, reasoning_content="hm"),
    "thinking blocks": member(1, thinking_blocks=BLOCKS),
    "a refusal": inserted(4, {"role": "assistant", "content": None, "refusal": "no"}),
    "an answer in audio": inserted(4, {"role": "assistant", "content": "x", "audio": {"id": "a"}}),
    "text beside a call": member(1, content="Let me see."),
    "a turn that is said to be the upstream's": member(1, turn={"content": []}),
    "something unheard of in a user's turn": member(0, unheard_of=1),
    "something unheard of in an assistant's turn": member(1, unheard_of=1),
    "something unheard of in a result": member(2, unheard_of=1),
    "something unheard of in a part": part("text", "!", unheard_of=1),
    "thoughts under another name": member(1, reasoning="hm"),
    "details of thoughts": member(1, reasoning_details=[{"type": "reasoning.text"}]),
    "places that were cited": member(1, annotations=[{"type": "url_citation"}]),
    "two parts": part("text", "!"),
    "something unheard of in a tool": with_tools(tool(unheard_of=1)),
    "a result in parts": member(2, content=[{"type": "text", "text": "very cold"}]),
    "a system message": inserted(0, {"role": "system", "content": "Be short."}),
    "a developer message": inserted(0, {"role": "developer", "content": "Be short."}),
    "a late system message": inserted(3, {"role": "system", "content": "Be short."}),
    "a name of a system": member(0, name="boss"),
    "a picture": part("image_url", {"url": PIXEL}),
    "a detail of a picture": part("image_url", {"url": PIXEL, "detail": "low"}),
    "a picture elsewhere": part("image_url", {"url": "https://example.com/a.png"}),
    "sound": part("input_audio", {"data": "UklGRg==", "format": "wav"}),
    "a document": part(
        "file", {"file_data": "data:application/pdf;base64,JVBERg==", "filename": "a.pdf"}
    ),
    "a document elsewhere": part("file", {"file_id": "file-1"}),
    "a place to cache up to": part(
        "text", "!", prompt_cache_breakpoint={"type": "ephemeral"}
    ),
    "thoughts wanted": lambda body: body.update(thinking={"type": "enabled"}, messages=[USER]),
    "a budget of thoughts": lambda body: body["thinking"].update(budget_tokens=2000),
    "a strict tool": with_tools(tool(strict=True)),
    "what a tool does": with_tools(tool(description="Weather.")),
    "a free-text tool": with_tools(tool(), {"type": "custom", "custom": {"name": "sql"}}),
    "tools without a choice of them": with_tools(tool(), tool_choice="none"),
    "some of the tools": with_tools(
        tool(),
        tool("other"),
        tool_choice={
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "auto",
                "tools": [{"type": "function", "function": {"name": "other"}}],
            },
        },
    ),
}  # fmt: skip

# What must be there before the detail can.
BEFORE: Mapping[str, str] = {
    "a detail of a picture": "a picture",
    "a name of a system": "a system message",
    "a budget of thoughts": "thoughts wanted",
    "something unheard of in a part": "two parts",
    "a place to cache up to": "two parts",
}


@every_upstream
@pytest.mark.parametrize("detail", DETAILS)
def test_every_detail_is_carried_or_named_or_refused(upstream: Upstream, detail: str) -> None:
    adapter = upstream.connect(upstream.link())
    bare: Json = {"model": upstream.model, **copy.deepcopy(BARE)}
    if detail in BEFORE:
        DETAILS[BEFORE[detail]](bare)
    rich = copy.deepcopy(bare)
    DETAILS[detail](rich)
    without, sent = send(adapter, bare), send(adapter, rich)
    if sent.refused is not None:
        assert sent.refused.param
        return
    assert sent.body != without.body or set(sent.notes) - set(without.notes)


@every_upstream
def test_a_request_leaves_no_trace_in_the_next(upstream: Upstream) -> None:
    """Tools are read and encoded once for all requests that bring the same."""
    adapter = upstream.connect(upstream.link())
    tools = [tool(), tool("查询天气", strict=True), tool("open", parameters={"anyOf": [SCHEMA]})]
    usual: Json = {"model": upstream.model, "messages": [USER], "tools": tools}
    first = send(adapter, usual)
    for odd in (
        {"tool_choice": "required", "parallel_tool_calls": False},
        {"tool_choice": "none", "response_format": {"type": "json_object"}},
        {"reasoning_effort": "high", "cache_control": {"type": "ephemeral"}},
    ):
        send(adapter, {**usual, **odd})
    assert send(adapter, usual) == first
