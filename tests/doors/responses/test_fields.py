"""Fields in chat's words, tools in chat's shape, and what is refused or named."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.errors import BadRequest
from adapters.protocol import Finish, Json, TextDelta, ToolCallStart
from tests.doors.responses.written import codes, read, whole

LOOK = {"type": "function", "name": "look", "parameters": {"type": "object"}}
LOOK_TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
LONG = "n" * 50
NAMED_SCHEMA = {"name": "City", "schema": {"type": "object"}, "strict": True}
SCHEMA = {"type": "json_schema", **NAMED_SCHEMA}

PARAMS: tuple[tuple[Json, Json], ...] = (
    ({"max_output_tokens": 5}, {"max_completion_tokens": 5}),
    ({"reasoning": {"effort": "high", "summary": "auto"}}, {"reasoning_effort": "high"}),
    ({"reasoning": {"summary": "auto"}}, {}),
    ({"text": {"verbosity": "low", "format": {"type": "text"}}}, {"verbosity": "low"}),
    ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
    ({"text": {"format": SCHEMA}},
     {"response_format": {"type": "json_schema", "json_schema": NAMED_SCHEMA}}),
    ({"top_logprobs": 2, "include": ["message.output_text.logprobs"]},
     {"logprobs": True, "top_logprobs": 2}),
    ({"top_logprobs": 0, "include": ["reasoning.encrypted_content"]}, {}),
    ({"parallel_tool_calls": True}, {}),
    ({"parallel_tool_calls": False, "tools": [LOOK]}, {"parallel_tool_calls": False}),
    ({"metadata": {"a": "b"}, "user": "u"}, {"metadata": {"a": "b"}, "user": "u"}),
    ({"store": False, "client_metadata": {"a": "{}"}, "truncation": "disabled"}, {}),
)  # fmt: skip


@pytest.mark.parametrize(("fields", "params"), PARAMS)
def test_fields_become_chats(fields: Json, params: Json) -> None:
    parsed = read(**fields)
    assert parsed.request.params == params
    assert parsed.receipt == ()


NAMED: tuple[Json, ...] = ({"truncation": "auto"}, {"context_management": [{}]},
         {"include": ["file_search_call.results"]}, {"include": ["message.output_text.logprobs"]},
         {"reasoning": {"context": "all"}})  # fmt: skip


@pytest.mark.parametrize("fields", NAMED, ids=[next(iter(one)) for one in NAMED])
def test_what_has_no_place_is_named(fields: Json) -> None:
    (note,) = read(**fields).receipt
    assert (note.code, note.top) == ("parameter_dropped", next(iter(fields)))
    with pytest.raises(BadRequest):
        read(strict=True, **fields)


def test_the_bound_for_calls_goes_with_the_request() -> None:
    parsed = read(max_tool_calls=2)
    assert (parsed.request.call.most_calls, parsed.receipt) == (2, ())
    assert "max_tool_calls" not in {**parsed.request.params, **parsed.request.extra}


REFUSED: tuple[tuple[Json, str], ...] = (
    ({"max_tool_calls": 0}, "max_tool_calls"),
    ({"background": True}, "background"),
    ({"conversation": "conv_1"}, "conversation"),
    ({"prompt": {"id": "p"}}, "prompt"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"text": {"format": {"type": "json_schema"}}}, "text.format"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tool_choice": {"type": "function", "name": "no"}, "tools": [LOOK]}, "tool_choice"),
    ({"tools": [LOOK, LOOK]}, "tools"),
    ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name"),
    ({"tools": [{"type": "code_interpreter"}]}, "tools"),
    ({"tools": [LOOK], "tool_choice": {"type": "web_search"}}, "tools"),
    ({"tools": [LOOK, {"type": "shell"}], "tool_choice": {"type": "shell"}}, "tools"),
)


@pytest.mark.parametrize(("fields", "param"), REFUSED)
def test_what_would_change_the_meaning_is_refused(fields: Json, param: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(**fields)
    assert (caught.value.status, caught.value.param) == (400, param)


CHOICES: tuple[tuple[Any, Any], ...] = (
    ("none", "none"),
    ("auto", "auto"),
    ("required", "required"),
    ({"type": "function", "name": "look"}, {"type": "function", "function": {"name": "look"}}),
    ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]},
     {"type": "allowed_tools", "allowed_tools": {
         "mode": "auto", "tools": [{"type": "function", "function": {"name": "look"}}]}}),
)  # fmt: skip


@pytest.mark.parametrize(("choice", "said"), CHOICES)
def test_a_choice_is_nested_as_chat_has_it(choice: Any, said: Any) -> None:
    request = read(tools=[LOOK], tool_choice=choice).request
    assert request.tool_choice == said
    assert request.tools == (LOOK_TOOL,)


def test_without_tools_there_is_no_choice() -> None:
    assert read(tool_choice="auto").request.tool_choice is None


def test_a_function_is_not_strict_unless_it_says_so() -> None:
    (tool,) = read(tools=[LOOK | {"strict": True}]).request.tools
    assert tool["function"]["strict"] is True
    assert "strict" not in LOOK_TOOL["function"]


def test_a_namespace_is_split_again_in_the_answer() -> None:
    members = [{"type": "function", "name": "look"}, {"type": "custom", "name": LONG}]
    space = {"type": "namespace", "name": "ns" * 10, "description": "about", "tools": members}
    parsed = read(tools=[space])
    first, second = parsed.request.tools
    assert first["function"] == {"name": "ns" * 10 + "__look", "description": "about"}
    assert len(second["custom"]["name"]) <= 64
    start = ToolCallStart(0, "c", second["custom"]["name"], "custom")
    (item,) = whole(start, Finish("tool_calls"), tools=[space])["output"]
    assert (item["namespace"], item["name"]) == ("ns" * 10, LONG)


def test_a_grammar_becomes_words() -> None:
    form = {"type": "grammar", "syntax": "lark", "definition": "start: x"}
    parsed = read(tools=[{"type": "custom", "name": "p", "description": "edits", "format": form}])
    (tool,) = parsed.request.tools
    assert tool["custom"]["description"] == (
        "edits\n\nThe input must match this lark grammar:\nstart: x"
    )
    assert "format" not in tool["custom"]
    assert codes(parsed) == [("grammar_as_words", "tools[0].format")]


def test_hosted_tools_beside_others_are_left_out_and_a_search_waits_for_the_gateways_own() -> None:
    parsed = read(tools=[LOOK, {"type": "file_search"}, {"type": "web_search"}])
    assert parsed.request.tools == (LOOK_TOOL,)
    assert codes(parsed) == [("tool_dropped", "tools[1]")]
    native = parsed.request.native
    assert native is not None
    assert native.search
    assert [note.code for note in native.lost] == ["tool_dropped"]
    assert native.refusal is None


@pytest.mark.parametrize("more", [{}, {"tools": [LOOK, {"type": "web_search"}],
                                       "tool_choice": {"type": "web_search"}}])  # fmt: skip
def test_a_search_alone_or_forced_is_refused_where_nobody_does_it(more: Json) -> None:
    fields: Json = {"tools": [{"type": "web_search"}]} | more
    native = read(**fields).request.native
    assert native is not None
    assert native.refusal is not None
    assert native.refusal.code == "unsupported_tool"


def test_tools_among_the_items_are_declared_too() -> None:
    more = {"type": "additional_tools", "role": "developer", "tools": [LOOK]}
    assert read([more, {"role": "user", "content": "hi"}]).request.tools == (LOOK_TOOL,)


def test_the_answer_repeats_the_request() -> None:
    asked: Json = {"metadata": {"a": "b"}, "tools": [LOOK], "instructions": "x", "temperature": 1}
    said = whole(TextDelta("a"), Finish("stop"), **asked)
    assert {name: said[name] for name in asked} == asked
    assert (said["store"], said["tool_choice"]) == (True, "auto")
    assert said["id"] == "resp_" + "ab" * 12
