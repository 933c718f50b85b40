"""What the door takes, what it refuses, and what it says about it."""

from __future__ import annotations

import contextlib
import json
import re
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.protocol import Json, RequestContext
from middleware.doors.chat import ParsedChat, parse
from middleware.doors.chat.parse import MAX_DEPTH

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CUSTOM = {"type": "custom", "custom": {"name": "run"}}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "ok"}
OLD_CALL = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}}
OLD_RESULT = {"role": "function", "name": "f", "content": "ok"}


def body(**fields: Any) -> bytes:
    return orjson.dumps({"model": "m", "messages": [USER], **fields})


def ask(**fields: Any) -> ParsedChat:
    return parse(body(**fields))


def said(*messages: Any) -> Json:
    return {"messages": [USER, *messages]}


def refused(data: bytes) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        parse(data)
    return caught.value


# Fields of a bad request, the path, OpenAI's code, and what the message must say.
BAD: tuple[tuple[Json, str, str, str], ...] = (
    ({"model": None}, "model", "invalid_type", "expected a string, but got null"),
    ({"model": ""}, "model", "empty_string", "minimum length 1"),
    (
        {"model": "m" * 257},
        "model",
        "string_above_max_length",
        "maximum length of 256, but got 257",
    ),
    ({"messages": None}, "messages", "invalid_type", "expected an array, but got null"),
    ({"messages": "my secret"}, "messages", "invalid_type", "but got a string instead"),
    ({"messages": []}, "messages", "empty_array", "minimum length 1, but got an empty array"),
    ({"messages": ["hi"]}, "messages[0]", "invalid_type", "expected an object, but got a string"),
    ({"messages": [None]}, "messages[0]", "invalid_type", "expected an object, but got null"),
    (
        {"messages": [{"content": "x"}]},
        "messages[0].role",
        "missing_required_parameter",
        "Missing required parameter: 'messages[0].role'",
    ),
    (
        {"messages": [{"role": "robot", "content": "x"}]},
        "messages[0].role",
        "invalid_value",
        "one of 'system', 'developer', 'user', 'assistant', 'tool', 'function', but got 'robot'",
    ),
    ({"messages": [{"role": [1]}]}, "messages[0].role", "invalid_value", "but got an array"),
    (
        {"messages": [{"role": "user"}]},
        "messages[0].content",
        "missing_required_parameter",
        "'messages[0].content'",
    ),
    (
        {"messages": [{"role": "user", "content": 5}]},
        "messages[0].content",
        "invalid_type",
        "expected a string or an array, but got an integer",
    ),
    (
        {"messages": [{"role": "user", "content": {"a": 1}}]},
        "messages[0].content",
        "invalid_type",
        "expected a string or an array, but got an object",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "hologram"}]}]},
        "messages[0].content[0].type",
        "invalid_value",
        "'text', 'image_url', 'input_audio', 'file', but got 'hologram'",
    ),
    (
        {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
        "messages[0].content[0].type",
        "missing_required_parameter",
        "messages[0].content[0].type",
    ),
    (
        {"messages": [{"role": "user", "content": ["x"]}]},
        "messages[0].content[0]",
        "invalid_type",
        "expected an object, but got a string",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "http"}]}]},
        "messages[0].content[0].image_url",
        "invalid_type",
        "expected an object, but got a string",
    ),
    (
        {"messages": [{"role": "system", "content": [{"type": "image_url"}]}]},
        "messages[0].content[0].type",
        "invalid_value",
        "expected 'text', but got 'image_url'",
    ),
    (
        said({"role": "assistant", "content": "", "tool_calls": []}),
        "messages[1].tool_calls",
        "empty_array",
        "minimum length 1",
    ),
    (
        said({**CALLS, "tool_calls": [{**CALL, "type": None}]}, RESULT),
        "messages[1].tool_calls[0].type",
        "invalid_value",
        "one of 'function', 'custom', but got null",
    ),
    (
        said({**CALLS, "tool_calls": [{**CALL, "function": {"name": "f", "arguments": {}}}]}),
        "messages[1].tool_calls[0].function.arguments",
        "invalid_type",
        "expected a string, but got an object",
    ),
    (
        said({**CALLS, "tool_calls": [{**CALL, "function": {"name": "", "arguments": ""}}]}),
        "messages[1].tool_calls[0].function.name",
        "empty_string",
        "minimum length 1",
    ),
    (
        said(CALLS, {"role": "tool", "content": "x"}),
        "messages[2].tool_call_id",
        "missing_required_parameter",
        "tool_call_id",
    ),
    (said(CALLS), "messages[1].tool_calls", "invalid_tool_history", "No result was sent for a"),
    (
        said(RESULT),
        "messages[1].tool_call_id",
        "invalid_tool_history",
        "Send each result right after the assistant message",
    ),
    (
        said({**CALLS, "tool_calls": [CALL, CALL]}, RESULT),
        "messages[1].tool_calls",
        "invalid_tool_history",
        "Give each call its own",
    ),
    ({"temperature": "hot"}, "temperature", "invalid_type", "expected a number, but got a string"),
    ({"temperature": True}, "temperature", "invalid_type", "but got a boolean"),
    (
        {"temperature": 9},
        "temperature",
        "decimal_above_max_value",
        "decimal above maximum value. Expected a value <= 2, but got 9",
    ),
    ({"temperature": -1}, "temperature", "decimal_below_min_value", "Expected a value >= 0"),
    ({"top_p": 1.5}, "top_p", "decimal_above_max_value", "Expected a value <= 1, but got 1.5"),
    ({"presence_penalty": -3}, "presence_penalty", "decimal_below_min_value", ">= -2"),
    ({"frequency_penalty": 3}, "frequency_penalty", "decimal_above_max_value", "<= 2"),
    (
        {"max_tokens": -678},
        "max_tokens",
        "integer_below_min_value",
        "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got -678 "
        "instead.",
    ),
    ({"max_tokens": 2**63}, "max_tokens", "integer_above_max_value", "Expected a value < "),
    ({"max_completion_tokens": 0}, "max_completion_tokens", "integer_below_min_value", ">= 1"),
    ({"max_tokens": 1.5}, "max_tokens", "invalid_type", "an integer, but got a decimal number"),
    ({"seed": 2.0**70}, "seed", "invalid_type", "but got a number of more than 64 bits"),
    ({"n": 0}, "n", "integer_below_min_value", ">= 1"),
    ({"n": 129}, "n", "integer_above_max_value", "Expected a value <= 128, but got 129"),
    ({"n": 2}, "n", "unsupported_parameter", "send the request n times"),
    ({"seed": "1"}, "seed", "invalid_type", "expected an integer, but got a string"),
    ({"stream": "yes"}, "stream", "invalid_type", "expected a boolean, but got a string"),
    ({"stop": {"a": 1}}, "stop", "invalid_type", "a string or an array, but got an object"),
    ({"stop": ["a"] * 5}, "stop", "array_above_max_length", "maximum length of 4, but got 5"),
    ({"stop": ["a", 1]}, "stop[1]", "invalid_type", "expected a string, but got an integer"),
    ({"stream_options": {}}, "stream_options", "invalid_value", "only allowed with 'stream': true"),
    (
        {"stream": True, "stream_options": {"include_usage": 1}},
        "stream_options.include_usage",
        "invalid_type",
        "expected a boolean",
    ),
    ({"top_logprobs": 3}, "top_logprobs", "invalid_value", "needs 'logprobs': true"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "integer_above_max_value", "<= 20"),
    ({"logit_bias": {"5": 101}}, "logit_bias.5", "invalid_value", "from -100 to 100"),
    ({"logit_bias": {"5": -100.5}}, "logit_bias.5", "invalid_value", "from -100 to 100"),
    ({"logit_bias": {"5": "x"}}, "logit_bias.5", "invalid_value", "from -100 to 100"),
    ({"reasoning_effort": "ultra"}, "reasoning_effort", "invalid_value", "'xhigh' or 'max'"),
    ({"verbosity": "chatty"}, "verbosity", "invalid_value", "'low', 'medium' or 'high'"),
    ({"modalities": ["smell"]}, "modalities[0]", "invalid_value", "'text' or 'audio'"),
    ({"user": 5}, "user", "invalid_type", "expected a string, but got an integer"),
    (
        {"response_format": {"type": "xml"}},
        "response_format.type",
        "invalid_value",
        "one of 'text', 'json_object', 'json_schema', but got 'xml'",
    ),
    ({"response_format": {}}, "response_format.type", "missing_required_parameter", "type"),
    ({"response_format": "json"}, "response_format", "invalid_type", "expected an object"),
    (
        {"response_format": {"type": "json_schema"}},
        "response_format.json_schema",
        "missing_required_parameter",
        "response_format.json_schema",
    ),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x" * 65}}},
        "response_format.json_schema.name",
        "string_above_max_length",
        "maximum length of 64",
    ),
    ({"tools": {"a": 1}}, "tools", "invalid_type", "expected an array, but got an object"),
    ({"tools": [None]}, "tools[0]", "invalid_type", "expected an object, but got null"),
    (
        {"tools": [{"type": "function", "name": "f"}]},
        "tools[0].function",
        "missing_required_parameter",
        "tools[0].function",
    ),
    (
        {"tools": [TOOL, {"type": "retrieval"}]},
        "tools[1].type",
        "invalid_value",
        "one of 'function', 'custom', but got 'retrieval'",
    ),
    (
        {"tools": [{"type": "function", "function": {"name": "a b!"}}]},
        "tools[0].function.name",
        "invalid_value",
        "Expected only letters, digits, '_', '-' and '.', but got 'a b!'",
    ),
    (
        {"tools": [{"type": "function", "function": {"name": "ab\n"}}]},
        "tools[0].function.name",
        "invalid_value",
        "Expected only letters",
    ),
    (
        {"tools": [{"type": "function", "function": {"name": "a" * 65}}]},
        "tools[0].function.name",
        "string_above_max_length",
        "maximum length of 64, but got 65",
    ),
    ({"tools": [TOOL] * 1025}, "tools", "array_above_max_length", "maximum length of 1024"),
    ({"tools": [TOOL, TOOL]}, "tools[1].function.name", "invalid_value", "must be unique"),
    (
        {"tools": [TOOL, {"type": "custom", "custom": {"name": "f"}}]},
        "tools[1].custom.name",
        "invalid_value",
        "must be unique",
    ),
    ({"tool_choice": "required"}, "tool_choice", "invalid_value", "Send the tools, or leave"),
    ({"tools": [TOOL], "tool_choice": "any"}, "tool_choice", "invalid_value", "or 'required'"),
    (
        {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "f"}},
        "tool_choice.type",
        "invalid_value",
        "one of 'function', 'custom', 'allowed_tools', but got 'tool'",
    ),
    (
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
        "tool_choice",
        "invalid_value",
        "'g', which is not in 'tools'",
    ),
    (
        {"tools": [TOOL], "tool_choice": {"type": "custom", "custom": {"name": "f"}}},
        "tool_choice",
        "invalid_value",
        "the custom tool 'f', which is not in 'tools'",
    ),
    (
        {
            "tools": [TOOL],
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [TOOL, CUSTOM]},
            },
        },
        "tool_choice",
        "invalid_value",
        "the custom tool 'run'",
    ),
    (
        {
            "tools": [TOOL],
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": []},
            },
        },
        "tool_choice.allowed_tools.tools",
        "empty_array",
        "minimum length 1",
    ),
    ({"functions": []}, "functions", "empty_array", "minimum length 1"),
    (
        {"functions": [{"name": "f"}], "tools": [TOOL]},
        "functions",
        "invalid_value",
        "Send 'tools' alone",
    ),
    (
        {"functions": [{"name": "f"}], "function_call": {"name": "g"}},
        "function_call.name",
        "invalid_value",
        "'g', which is not in 'functions'",
    ),
    ({"function_call": {"name": "f"}}, "function_call", "invalid_value", "has no 'functions'"),
    (
        {"functions": [{"name": "f"}], "function_call": "required"},
        "function_call",
        "invalid_value",
        "'none' or 'auto'",
    ),
    (
        said(OLD_CALL, USER),
        "messages[1].function_call",
        "invalid_tool_history",
        "no message with role 'function' and name 'f' follows",
    ),
    (
        said(OLD_CALL, {**OLD_RESULT, "name": "g"}),
        "messages[2].name",
        "invalid_tool_history",
        "did not call 'g'",
    ),
    (said(OLD_RESULT), "messages[1].name", "invalid_tool_history", "Send each result right after"),
    (
        said({**CALLS, "function_call": {"name": "f", "arguments": ""}}, RESULT),
        "messages[1].function_call",
        "invalid_value",
        "Send 'tool_calls' alone",
    ),
)


@pytest.mark.parametrize(("fields", "param", "code", "words"), BAD, ids=[row[1] for row in BAD])
def test_a_bad_request_is_told_where_and_what_to_send_instead(
    fields: Json, param: str, code: str, words: str
) -> None:
    error = refused(body(**fields))
    assert (error.status, error.type) == (400, "invalid_request_error")
    assert (error.param, error.code) == (param, code)
    assert words in error.message


@pytest.mark.parametrize("missing", ["model", "messages"])
def test_what_is_required_is_asked_for(missing: str) -> None:
    fields = {"model": "m", "messages": [USER]}
    del fields[missing]
    error = refused(orjson.dumps(fields))
    assert (error.param, error.code) == (missing, "missing_required_parameter")


START = b'{"model":"m","messages":[{"role":"user","content":"x"}],'
NOT_JSON = (
    *(b"", b"{not json", START[:-1] + b"}}", b"\xef\xbb\xbf{}", "{}".encode("utf-16")),
    *(START + b'"temperature":NaN}', START + b'"temperature":-Infinity}'),
    *(START + b'"temperature":1e999}', START + b'"seed":' + b"9" * 400 + b"}"),
    *(b'{"model":"\xff\xfe"}', b'{"model":"\\ud80"}', b"[" * 20_000 + b"]" * 20_000),
)


@pytest.mark.parametrize("data", NOT_JSON, ids=range(len(NOT_JSON)))
def test_what_is_not_json_is_refused_without_repeating_it(data: bytes) -> None:
    error = refused(data)
    assert (error.status, error.code) == (400, "invalid_json")
    assert "Send a JSON object in UTF-8" in error.message
    assert len(error.message) < 300


HALVES = {
    r"a \ud83d": "a \ufffd",
    r"a \uD83D b": "a \ufffd b",
    r"\ude00 a": "\ufffd a",
    r"\ud83d\ud83d\ude00": "\ufffd😀",
    r"\ud83d\n": "\ufffd\n",
    r"\ud83d\u4f60": "\ufffd你",
    r"\\ud83d \ud83d": r"\ud83d" + " \ufffd",
    r"\\\ud83d": "\\\ufffd",
    r"\"\ud83d\"": '"\ufffd"',
}


@pytest.mark.parametrize(("escaped", "meant"), HALVES.items())
def test_an_emoji_cut_in_two_does_not_end_a_conversation(escaped: str, meant: str) -> None:
    asked = parse(body(user="X").replace(b"hi", escaped.encode()))
    assert asked.request.messages == ({"role": "user", "content": meant},)
    assert [note.code for note in asked.receipt] == ["half_character_replaced"]


@pytest.mark.parametrize("escaped", [r"\ud83d\ude00", r"\\ud83d", r"\\\\ud83d\u4f60"])
def test_whole_characters_are_left_alone(escaped: str) -> None:
    asked = parse(body().replace(b"hi", escaped.encode()))
    assert asked.request.messages[0]["content"] == json.loads(f'"{escaped}"')
    assert asked.receipt == ()


def test_half_a_character_excuses_no_other_mistake() -> None:
    assert refused(body().replace(b"hi", rb"\ud83d")[:-1]).code == "invalid_json"


@pytest.mark.parametrize("data", [b"[1]", b'"hi"', b"null", b"42", b"true"])
def test_what_is_not_an_object_is_refused(data: bytes) -> None:
    error = refused(data)
    assert (error.code, error.message) == (
        "invalid_type",
        "The request body must be a JSON object.",
    )


def test_a_mistake_never_repeats_a_prompt() -> None:
    secret = "my medical history"
    for fields in ({"messages": secret}, {"messages": [secret]}, {"tools": secret}):
        assert secret not in refused(body(**fields)).message


def test_a_mistake_repeats_little_of_what_is_long() -> None:
    long = "x" * 100_000
    for fields in (
        {"messages": [{"role": long}]},
        {"tool_choice": long},
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": long}}},
        {"logit_bias": {long: "x"}},
        said({**RESULT, "tool_call_id": long}),
        said(*({**CALLS, "tool_calls": [{**CALL, "id": str(n)} for n in range(10_000)]},)),
    ):
        error = refused(body(**fields))
        assert len(error.message) <= 2001
        assert len(error.param or "") < 100


# Nesting ---------------------------------------------------------------------------------------


def nested(levels: int, opener: bytes = b'{"a":', closer: bytes = b"}") -> bytes:
    return (
        START + b'"metadata":{"b":' + opener * (levels - 2) + b"1" + closer * (levels - 2) + b"}}"
    )


@pytest.mark.parametrize(("opener", "closer"), [(b'{"a":', b"}"), (b"[", b"]"), (b'[{"a":', b"}]")])
def test_the_body_may_be_so_deep_and_no_deeper(opener: bytes, closer: bytes) -> None:
    step = opener.count(b"[") + opener.count(b"{")
    repeats = (MAX_DEPTH - 2) // step + 2
    parse(nested(repeats, opener, closer))
    error = refused(nested(repeats + 1, opener, closer))
    assert error.message == "The request body is nested more than 64 levels deep. Flatten it."


HIDING = (
    (b'{"x":"}","a":', b',"y":"{"}'),
    (b'["]",', b',"["]'),
    (b'{"x":"\\"}","a":', b',"y":"\\"{"}'),
    (b'{"x":"}\\\\","a":', b',"y":"{\\\\"}'),
)


@pytest.mark.parametrize(("opener", "closer"), HIDING)
def test_brackets_in_strings_hide_no_depth(opener: bytes, closer: bytes) -> None:
    parse(nested(MAX_DEPTH, opener, closer))
    assert "levels deep" in refused(nested(MAX_DEPTH + 1, opener, closer)).message


json_values = st.recursive(
    st.none() | st.integers(0, 9) | st.text('a"\\{}[] ', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"\\{}[]'), inner),
    max_leaves=20,
)


@given(json_values, st.integers(0, 80))
def test_depth_is_that_of_the_value_whatever_its_strings_say(value: Any, wrapped: int) -> None:
    for _ in range(wrapped):
        value = ["}]", value, '{[\\"']
    deep = depth({"metadata": {"b": value}}) > MAX_DEPTH
    data = body(metadata={"b": value})
    if deep:
        assert "levels deep" in refused(data).message
    else:
        parse(data)


def depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, inner), default=0)


MANY = 200_000
FLOODS = (
    b'{"model":"m","messages":[' + b"1," * MANY + b"1]}",
    b'{"model":"m","messages":[{"role":"user","content":[' + b"1," * MANY + b"1]}]}",
    START + b'"tools":[' + b"1," * MANY + b"1]}",
    START + b'"functions":[' + b"1," * MANY + b"1]}",
    START + b'"modalities":[' + b"1," * MANY + b"1]}",
    START + b'"logit_bias":{' + b",".join(b'"%d":"x"' % n for n in range(MANY // 4)) + b"}}",
)


@pytest.mark.parametrize("data", FLOODS, ids=range(len(FLOODS)))
def test_a_flood_of_mistakes_is_one_mistake(data: bytes) -> None:
    began = time.process_time()
    refused(data)
    # Each of them told apart took a second.
    assert time.process_time() - began < 0.4


def test_many_messages_between_calls_and_results_take_linear_time() -> None:
    count = 4000
    calls = {**CALLS, "tool_calls": [{**CALL, "id": str(n)} for n in range(count)]}
    results = [{**RESULT, "tool_call_id": str(n)} for n in range(count)]
    between = [message for result in results for message in (result, USER)]
    began = time.process_time()
    parse(body(**said(calls, *between)))
    assert time.process_time() - began < 1


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
    caller = RequestContext(id="req_1", client="digest", deadline=5.0, key="k")
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


# What the door itself loses is in the receipt.
NOTED: tuple[tuple[Json, list[tuple[str, str]]], ...] = (
    ({"tool_choice": "auto"}, [("tool_choice_ignored", "tool_choice")]),
    ({"tool_choice": "none", "tools": []}, [("tool_choice_ignored", "tool_choice")]),
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


# The first way of calling ----------------------------------------------------------------------


def test_functions_become_tools_one_call_at_a_time() -> None:
    functions = [{"name": "f", "parameters": {"type": "object"}}, {"name": "g"}]
    asked = ask(functions=functions, function_call={"name": "g"}, temperature=0)
    request = asked.request
    assert asked.legacy
    assert [tool["function"] for tool in request.tools] == functions
    assert request.tool_choice == {"type": "function", "function": {"name": "g"}}
    assert request.params == {"temperature": 0, "parallel_tool_calls": False}


@pytest.mark.parametrize("choice", ["none", "auto", None])
def test_a_word_of_function_call_stays_that_word(choice: str | None) -> None:
    assert ask(functions=[{"name": "f"}], function_call=choice).request.tool_choice == choice


def test_old_calls_and_their_results_get_one_id() -> None:
    asked = ask(functions=[{"name": "f"}], **said(OLD_CALL, OLD_RESULT, OLD_CALL, OLD_RESULT))
    _, call, result, second, other = asked.request.messages
    (said_call,) = call["tool_calls"]
    function = {"name": "f", "arguments": "{}"}
    assert said_call == {"id": said_call["id"], "type": "function", "function": function}
    assert re.fullmatch("call_[0-9a-f]{24}", said_call["id"])
    assert "function_call" not in call
    assert result == {
        "role": "tool",
        "tool_call_id": call["tool_calls"][0]["id"],
        "content": "ok",
    }
    assert other["tool_call_id"] == second["tool_calls"][0]["id"] != result["tool_call_id"]


def test_the_ids_of_old_calls_are_the_same_in_every_later_turn() -> None:
    first = ask(**said(OLD_CALL, OLD_RESULT)).request.messages
    later = ask(**said(OLD_CALL, OLD_RESULT, USER, OLD_CALL, OLD_RESULT)).request.messages
    assert later[: len(first)] == first


def test_an_old_result_without_content_is_empty() -> None:
    messages = ask(**said(OLD_CALL, {"role": "function", "name": "f"})).request.messages
    assert messages[-1]["content"] == ""


def test_an_echoed_null_function_call_is_not_the_old_way() -> None:
    echoed = {"role": "assistant", "content": "x", "function_call": None, "tool_calls": None}
    asked = ask(tools=[TOOL], **said(echoed))
    assert not asked.legacy
    assert asked.request.messages[1] == echoed


def test_an_old_history_with_tools_is_answered_with_tool_calls() -> None:
    asked = ask(tools=[TOOL], **said(OLD_CALL, OLD_RESULT))
    assert not asked.legacy
    assert "parallel_tool_calls" not in asked.request.params


# Histories that may be repaired ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "roles", "codes"),
    [
        ((CALLS, USER), ["user", "assistant", "tool", "user"], ["result_made_up"]),
        ((RESULT,), ["user"], ["result_dropped"]),
        ((OLD_CALL, USER), ["user", "assistant", "tool", "user"], ["result_made_up"]),
        ((OLD_RESULT,), ["user"], ["result_dropped"]),
    ],
)
def test_a_history_is_repaired_where_the_config_says_so(
    messages: tuple[Json, ...], roles: list[str], codes: list[str]
) -> None:
    asked = parse(body(**said(*messages)), repair=True)
    assert [message["role"] for message in asked.request.messages] == roles
    assert [note.code for note in asked.receipt] == codes


# Anything at all -------------------------------------------------------------------------------

words = st.sampled_from(
    (
        *("model", "messages", "role", "user", "assistant", "tool", "content", "tool_calls"),
        *("type", "function", "name", "f", "arguments", "{}", "tools", "stream", "stop", "id", "a"),
        *("function_call", "functions", "tool_choice", "stream_options", "text", "n", ""),
    )
)
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


# Grammars ---------------------------------------------------------------------------------------

DEEP = "root ::= " + "(" * 30_000 + "x" + ")" * 30_000
LISTED = 'root ::= "(" * 99 [(]+ # ((\n' + 'item ::= ("(" "x" ")" | "\\"(" [\\](()])*\n' * 400


def held_to(grammar: str) -> list[Json]:
    custom = {"name": "f", "format": {"type": "grammar", "grammar": {"definition": grammar}}}
    return [
        *({name: grammar} for name in ("grammar", "guided_grammar", "ebnf")),
        {"structured_outputs": {"grammar": grammar}},
        {"tools": [{"type": "custom", "custom": custom}]},
    ]


def with_pattern(pattern: str) -> list[Json]:
    schema = {"type": "object", "properties": {"a": {"items": [{"pattern": pattern}]}}}
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    return [{"response_format": form}, {"json_schema": schema}]


GRAMMARS = (
    DEEP,
    "(" * 65,
    "root ::= x\n" * 1001,
    "x" * 65_537,
    '# "\n' + "(" * 65,
    "[]" + "(" * 65,
)
PATTERNS = ("^" + "(" * 30_000, '"' + "(" * 65, "#" + "(" * 65, r"\[" + "(" * 65, "x" * 65_537)
REFUSED = [
    *(fields for grammar in GRAMMARS for fields in held_to(grammar)),
    *(fields for pattern in PATTERNS for fields in with_pattern(pattern)),
]
TAKEN = [
    *(fields for one in (LISTED, "(" * 64, "()" * 9000) for fields in held_to(one)),
    *(fields for one in (r"\(" * 99, "[(]" * 99, "()" * 9000) for fields in with_pattern(one)),
]


@pytest.mark.parametrize("fields", REFUSED, ids=range(len(REFUSED)))
def test_a_grammar_that_could_crash_its_parser_is_refused(fields: Json) -> None:
    error = refused(body(**fields))
    assert "too large" in error.message or "within each other" in error.message
    assert error.param is not None
    assert error.param.split(".")[0].split("[")[0] in fields


@pytest.mark.parametrize("fields", TAKEN, ids=range(len(TAKEN)))
def test_a_grammar_that_somebody_may_write_is_taken(fields: Json) -> None:
    ask(**fields)


@pytest.mark.parametrize("text", ["[", '"', "\\", "#", "(", '["', "[\\", '"\\'])
def test_a_grammar_is_measured_in_linear_time(text: str) -> None:
    begun = time.thread_time()
    for fields in (*held_to(text * 30_000 + "(" * 60), *with_pattern(text * 30_000 + "(" * 60)):
        with contextlib.suppress(BadRequest):
            ask(**fields)
    assert time.thread_time() - begun < 0.25
