"""Tools and the choice among them, in every form OpenAI knows, become one form."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.protocol import ChatRequest, Json, ToolCallDelta, ToolCallStart
from adapters.shared.toolbox import PLAIN_NAME, alias, toolbox

WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        "strict": True,
    },
}
CHINESE: Json = {"type": "function", "function": {"name": "查询天气"}}
SQL: Json = {"type": "custom", "custom": {"name": "run_sql", "description": "Runs SQL."}}
ALL = (WEATHER, CHINESE, SQL)


def named(name: str, kind: str = "function") -> Json:
    return {"type": kind, kind: {"name": name}}


def allowed(mode: str, *tools: Json) -> Json:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(tools)}}


def request(*tools: Json, choice: Any = None, **params: Any) -> ChatRequest:
    return ChatRequest("m", (), tools, choice, params)


@pytest.mark.parametrize(
    ("choice", "mode", "forced", "offered"),
    [
        (None, "auto", "", 3),
        ("auto", "auto", "", 3),
        ("none", "none", "", 3),
        ("required", "required", "", 3),
        ("any", "required", "", 3),
        (named("get_weather"), "named", "get_weather", 3),
        (named("查询天气"), "named", alias("查询天气"), 3),
        (named("run_sql", "custom"), "named", "run_sql", 3),
        (allowed("auto", named("get_weather")), "auto", "", 1),
        (
            allowed("required", named("run_sql", "custom"), named("查询天气")),
            "required",
            "",
            2,
        ),
    ],
)
def test_every_form_of_choice(choice: Any, mode: str, forced: str, offered: int) -> None:
    box = toolbox(request(*ALL, choice=choice))
    assert (box.mode, box.named, len(box.tools)) == (mode, forced, offered)


def test_a_tool_keeps_what_it_says() -> None:
    (tool,) = toolbox(request(WEATHER)).tools
    said = WEATHER["function"]
    assert (tool.name, tool.description, tool.parameters, tool.strict) == (
        said["name"],
        said["description"],
        said["parameters"],
        True,
    )


@pytest.mark.parametrize(
    ("parameters", "wanted"),
    [
        (None, {"type": "object", "properties": {}}),
        ({}, {"type": "object", "properties": {}}),
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        ({"anyOf": [{"type": "object"}]}, {"anyOf": [{"type": "object"}]}),
        ({"$ref": "#/$defs/a", "$defs": {}}, {"$ref": "#/$defs/a", "$defs": {}}),
    ],
)
def test_parameters_are_an_object_even_if_nobody_said_so(parameters: Any, wanted: Json) -> None:
    (tool,) = toolbox(request(_with(parameters=parameters))).tools
    assert tool.parameters == wanted


def _with(**members: Any) -> Json:
    return {"type": "function", "function": {"name": "f", **members}}


def test_a_custom_tool_is_a_function_with_one_string_and_a_note() -> None:
    box = toolbox(request(WEATHER, SQL))
    assert box.custom == {"run_sql"}
    assert box.tools[1].parameters["required"] == ["input"]
    assert [(note.code, note.field) for note in box.receipt] == [
        ("custom_tool_as_function", "tools[1]")
    ]
    events = [*box.calls("req").whole(0, "a", "run_sql", '{"input":"x"}')]
    assert events == [ToolCallStart(0, "a", "run_sql", "custom")]


def test_a_grammar_cannot_be_kept_so_it_is_refused() -> None:
    grammar = {"type": "custom", "custom": {"name": "f", "format": {"type": "grammar"}}}
    with pytest.raises(BadRequest) as caught:
        toolbox(request(WEATHER, grammar))
    assert caught.value.param == "tools[1].custom.format"


@pytest.mark.parametrize("tools", [(WEATHER, WEATHER), (WEATHER, _with(name="get_weather"))])
def test_two_tools_with_one_name_are_refused(tools: Sequence[Json]) -> None:
    with pytest.raises(BadRequest) as caught:
        toolbox(request(*tools))
    assert (caught.value.param, "get_weather" in caught.value.message) == ("tools", True)


def test_parallel_calls_are_off_only_if_the_client_says_so() -> None:
    said = {value: toolbox(request(WEATHER, parallel_tool_calls=value)) for value in (True, False)}
    assert (said[True].parallel, said[False].parallel) == (True, False)
    assert toolbox(request(WEATHER)).parallel
    assert toolbox(request(WEATHER, parallel_tool_calls=None)).parallel


def test_names_come_back_as_the_client_said_them() -> None:
    box = toolbox(request(*ALL))
    calls = box.calls("req")
    events = list(calls.whole(0, "a", alias("查询天气"), '{"a":1}'))
    assert events == [ToolCallStart(0, "a", "查询天气"), ToolCallDelta(0, '{"a":1}')]


def test_tools_of_the_history_are_declared_again_if_asked() -> None:
    call = {"id": "A", "type": "function", "function": {"name": "查询天气", "arguments": "{}"}}
    history = ({"role": "assistant", "tool_calls": [call, {**call, "id": "B"}]},)
    asked = ChatRequest("m", history)
    box = toolbox(asked, restore=True)
    assert [tool.name for tool in box.tools] == [alias("查询天气")]
    assert (box.mode, box.restored) == ("none", True)
    assert dict(box.originals) == {alias("查询天气"): "查询天气"}
    assert toolbox(asked).tools == ()
    assert toolbox(ChatRequest("m", ()), restore=True).tools == ()


@given(st.text(min_size=1, max_size=80))
def test_an_alias_is_plain_and_depends_on_the_name_alone(name: str) -> None:
    known = alias(name)
    assert PLAIN_NAME.fullmatch(known)
    assert alias(known) == known
    assert (known == name) == bool(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name))


@given(st.sets(st.text("天气查询ab_-. é", min_size=1, max_size=6), max_size=20))
def test_aliases_keep_names_apart(names: set[str]) -> None:
    assert len({alias(name) for name in names}) == len(names)


@given(st.permutations(ALL), st.booleans())
def test_the_order_of_tools_changes_no_tool(tools: list[Json], parallel: bool) -> None:
    before = copy.deepcopy(tools)
    box = toolbox(request(*tools, parallel_tool_calls=parallel))
    straight = toolbox(request(*ALL, parallel_tool_calls=parallel))
    assert {tool.name: tool for tool in box.tools} == {tool.name: tool for tool in straight.tools}
    assert tools == before
