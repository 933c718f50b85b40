"""Tools and their choice in the dialect an OpenAI-compatible endpoint knows."""

from __future__ import annotations

import json

import pytest

from adapters.compatible import Compatible
from adapters.compatible.dialect import Dialect
from adapters.protocol import Json
from tests.adapters.compatible.asking import CITY, FULL, HELLO, request, tool, written
from tests.support.dialogue import assistant, result
from tests.support.fold import fold, run
from tests.support.upstreams.tape import tape


def custom(name: str) -> Json:
    return {"type": "custom", "custom": {"name": name, "description": "Free text."}}


# Tools -----------------------------------------------------------------------------------------


def test_tools_and_choice_are_not_sent_without_tools() -> None:
    body, notes = written(tool_choice="auto", params={"parallel_tool_calls": False})
    assert body.keys() == {"model", "messages"}
    assert notes == []  # the door has named it


def test_function_tools_go_up_as_given() -> None:
    tools = (tool("f", strict=True), tool("g", description="", cache_control={"type": "x"}))
    for choice in ("auto", "none", "required", {"type": "function", "function": {"name": "g"}}):
        params = {"parallel_tool_calls": False}
        body, notes = written(tools=tools, tool_choice=choice, params=params)
        assert (body["tools"], body["tool_choice"]) == (list(tools), choice)
        assert body["parallel_tool_calls"] is False
        assert notes == []
    assert "tool_choice" not in written(tools=tools)[0]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, {"type": "object", "properties": {}}),
        (None, {"type": "object", "properties": {}}),
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        ({"anyOf": [CITY]}, {"anyOf": [CITY]}),
    ],
)
def test_parameters_are_always_an_object(given: Json | None, sent: Json) -> None:
    bare = {"type": "function", "function": {"name": "f", "parameters": given, "strict": None}}
    body, _ = written(tools=(bare,))
    assert body["tools"] == [{"type": "function", "function": {"name": "f", "parameters": sent}}]


ALLOWED = {
    "type": "allowed_tools",
    "allowed_tools": {
        "mode": "required",
        "tools": [{"type": "function", "function": {"name": "g"}}],
    },
}


def test_openai_gets_its_rare_tools_as_they_are() -> None:
    tools = (tool("f"), tool("g"), custom("run"))
    named = {"type": "custom", "custom": {"name": "run"}}
    for choice in (ALLOWED, named, "required"):
        body, notes = written(FULL, tools=tools, tool_choice=choice)
        assert (body["tools"], body["tool_choice"], notes) == (list(tools), choice, [])


def test_other_servers_get_allowed_tools_by_leaving_the_others_out() -> None:
    body, notes = written(tools=(tool("f"), tool("g")), tool_choice=ALLOWED)
    assert (body["tools"], body["tool_choice"], notes) == ([tool("g")], "required", [])


def test_other_servers_get_a_custom_tool_as_a_function() -> None:
    named = {"type": "custom", "custom": {"name": "run"}}
    called = {"id": "a", "type": "custom", "custom": {"name": "run", "input": 'say "沈阳"'}}
    turn = {"role": "assistant", "content": None, "tool_calls": [called]}
    messages = (*HELLO, turn, result("a", "done"))
    body, notes = written(tools=(custom("run"),), tool_choice=named, messages=messages)
    [declared] = body["tools"]
    assert declared["function"]["parameters"]["required"] == ["input"]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "run"}}
    [call] = body["messages"][1]["tool_calls"]
    assert call["function"] == {"name": "run", "arguments": '{"input":"say \\"沈阳\\""}'}
    assert notes == [("custom_tool_as_function", "tools[0]")]
    assert written(FULL, tools=(custom("run"),), messages=messages)[0]["messages"][1] == turn


def test_the_answer_gives_custom_calls_and_odd_names_back() -> None:
    tools = (custom("跑"), tool("查询天气"))
    names = [declared["function"]["name"] for declared in written(tools=tools)[0]["tools"]]
    calls = [
        {"id": "a", "function": {"name": names[0], "arguments": '{"input":"print(1)"}'}},
        {"id": "b", "function": {"name": names[1], "arguments": '{"city":"沈阳"}'}},
    ]
    body = {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    leaf = Compatible(tape([json.dumps(body).encode()]))
    answer = run(fold(leaf.stream(request(tools=tools))))
    assert answer.calls == [
        ("a", "跑", "custom", "print(1)"),
        ("b", "查询天气", "function", '{"city":"沈阳"}'),
    ]


@pytest.mark.parametrize("spoken", [Dialect(), FULL])
def test_a_name_beyond_ascii_has_one_alias_everywhere(spoken: Dialect) -> None:
    name = "查询天气"
    messages = (*HELLO, assistant(None, ("a", name, "{}")), result("a", "晴"))
    choice = {"type": "function", "function": {"name": name}}
    rare = (tool(name), custom("run")) if spoken is FULL else (tool(name),)
    body, _ = written(spoken, tools=rare, tool_choice=choice, messages=messages)
    aliases = {
        body["tools"][0]["function"]["name"],
        body["tool_choice"]["function"]["name"],
        body["messages"][1]["tool_calls"][0]["function"]["name"],
    }
    [alias] = aliases
    assert alias.isascii()


def test_a_second_call_is_left_out_where_only_one_was_asked_for() -> None:
    said = [{"id": k, "function": {"name": "f", "arguments": "{}"}} for k in "ab"]
    body = {"choices": [{"message": {"tool_calls": said}, "finish_reason": "tool_calls"}]}
    leaf = Compatible(tape([json.dumps(body).encode()]))
    asked = request(tools=(tool("f"),), params={"parallel_tool_calls": False})
    answer = run(fold(leaf.stream(asked)))
    assert ([call[0] for call in answer.calls], answer.notes) == (["a"], ["parallel_calls_dropped"])
