"""What the door takes, and what it says about it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.protocol import Json, RequestContext
from middleware.doors.chat.parse import parse
from tests.doors.chat.bodies import (
    CALL,
    CALLS,
    CUSTOM,
    RESULT,
    TOOL,
    USER,
    ask,
    body,
    refused,
    said,
    words,
)

# What is taken ---------------------------------------------------------------------------------


PART = {"type": "text", "text": "x"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}}
FINE: tuple[Json, ...] = (
    dict.fromkeys(("tools", "tool_choice", "stream", "stream_options", "n", "stop")),
    dict.fromkeys(("functions", "function_call", "temperature", "logprobs", "metadata")),
    {"tools": []},
    {"stop": []},
    {"stop": "\n"},
    {"stop": ["a", "b", "c", "d"]},
    {"temperature": 1},
    {"temperature": 0.1},
    {"max_tokens": 5},
    {"max_tokens": 5, "max_completion_tokens": 7},
    {"logprobs": True, "top_logprobs": 20},
    {"logit_bias": {"50256": -100, "1": 1.5}},
    {"n": 1},
    {"stream": True, "stream_options": {"include_usage": True}},
    {"seed": -(2**62)},
    {"response_format": {"type": "text"}},
    {"response_format": {"type": "json_object"}},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}},
    {"metadata": {"a": "b"}, "user": "u", "store": False, "service_tier": "auto"},
    {"messages": [{"role": "developer", "content": "d"}, {"role": "system", "content": [PART]}]},
    {"messages": [{"role": "user", "content": [PART, IMAGE], "name": "Ann"}]},
    {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]},
    {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}],
            }
        ]
    },
    said({"role": "assistant", "content": [PART, {"type": "refusal", "refusal": "no"}]}),
    said({"role": "assistant", "refusal": "no"}),
    said({"role": "assistant", "content": "x", "audio": None, "annotations": []}),
    said({**CALLS, "tool_calls": [{**CALL, "index": 0}]}, {**RESULT, "content": [PART, IMAGE]}),
    said(
        {
            **CALLS,
            "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "run", "input": "1"}}],
        },
        RESULT,
    ),
    {"tools": [TOOL, CUSTOM], "tool_choice": {"type": "custom", "custom": {"name": "run"}}},
    {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False},
    {"tools": [{"type": "function", "function": {"name": "查询天气", "parameters": None}}]},
    {"tools": [{"type": "function", "function": {"name": "github.list-issues_2"}}]},
    {"tools": [{"type": "function", "function": {"name": "a" * 64, "strict": None}}]},
)


@pytest.mark.parametrize("fields", FINE, ids=range(len(FINE)))
def test_valid_requests_go_on_as_they_were_sent(fields: Json) -> None:
    asked = ask(**fields)
    sent = {"messages": [USER], **fields}
    assert list(asked.request.messages) == sent["messages"]
    assert list(asked.request.tools) == (sent.get("tools") or [])
    for name, value in asked.request.params.items():
        assert value == sent[name]
    assert asked.receipt == ()


ELSEWHERE = {"messages", "tools", "tool_choice", "stream", "stream_options", "n"}


@pytest.mark.parametrize("fields", FINE, ids=range(len(FINE)))
def test_no_field_vanishes(fields: Json) -> None:
    request = ask(**fields).request
    given = {name for name, value in fields.items() if value is not None}
    assert given - ELSEWHERE == set(request.params)


def test_fields_openai_does_not_have_are_extras() -> None:
    request = ask(top_k=5, thinking={"type": "enabled"}, enable_thinking=None).request
    assert request.extra == {"top_k": 5, "thinking": {"type": "enabled"}, "enable_thinking": None}
    assert request.params == {}


def test_the_caller_is_carried_and_streaming_is_the_requests_own() -> None:
    caller = RequestContext(id="req_1", owner="digest", deadline=5.0, key="k")
    for stream in (True, False, None):
        call = parse(body(stream=stream), call=caller).request.call
        assert call == RequestContext("req_1", "digest", 5.0, stream is True)
        assert call.key == "k"


@pytest.mark.parametrize(
    ("stream", "options", "wanted"),
    [
        (True, {"include_usage": True}, True),
        (True, {"include_usage": False}, False),
        (True, {"include_usage": None}, False),
        (True, {}, False),
        (True, None, False),
        (False, None, False),
    ],
)
def test_the_usage_chunk_comes_when_it_is_asked_for(
    stream: bool, options: Json | None, wanted: bool
) -> None:
    assert ask(stream=stream, stream_options=options).usage_chunk is wanted


@pytest.mark.parametrize("said", [{"tool_choice": "none"}, {"function_call": "none"}])
def test_who_wants_no_calls_may_have_no_tools(said: Json) -> None:
    parsed = ask(**said)
    assert (parsed.request.tool_choice, parsed.receipt) == ("none", ())


# What the door itself loses is in the receipt.
NOTED: tuple[tuple[Json, list[tuple[str, str]]], ...] = (
    ({"tool_choice": "auto"}, [("tool_choice_ignored", "tool_choice")]),
    ({"function_call": "auto"}, [("tool_choice_ignored", "function_call")]),
    ({"parallel_tool_calls": False}, [("parameter_dropped", "parallel_tool_calls")]),
    ({"parallel_tool_calls": False, "tools": [TOOL]}, []),
    ({"functions": [TOOL["function"]]}, []),
    (
        {
            "stream": True,
            "stream_options": {"include_obfuscation": True, "x": 1, "include_usage": True},
        },
        [
            ("parameter_dropped", "stream_options.include_obfuscation"),
            ("parameter_dropped", "stream_options.x"),
        ],
    ),
    ({"stream": True, "stream_options": {"include_obfuscation": False}}, []),
    (
        said({"role": "assistant", "content": None}, USER),
        [("empty_turn_dropped", "messages[1]")],
    ),
)


@pytest.mark.parametrize(("fields", "notes"), NOTED)
def test_what_the_door_loses_it_says(fields: Json, notes: list[tuple[str, str]]) -> None:
    asked = ask(**fields)
    assert [(note.code, note.field) for note in asked.receipt] == notes
    assert asked.request.tool_choice is None


# Anything at all -------------------------------------------------------------------------------


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 1 << 62) | st.floats(-3, 3) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5),
    max_leaves=30,
)


@given(st.dictionaries(words, anything))
def test_any_object_is_taken_or_refused_with_a_reason(fields: Json) -> None:
    data = body(**fields)
    try:
        parse(data)
    except BadRequest:
        error = refused(data)
        assert error.status == 400
        assert error.message.endswith((".", "…"))
        assert error.param
