"""What the door refuses, with the place and what to send instead."""

from __future__ import annotations

import orjson
import pytest

from adapters.protocol import Json
from tests.doors.chat.bodies import (
    CALL,
    CALLS,
    CUSTOM,
    OLD_CALL,
    OLD_RESULT,
    RESULT,
    TOOL,
    USER,
    body,
    refused,
    said,
)

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
