"""`tool_choice` by emulation: demanded calls, constraints, and upstreams that refuse them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from adapters.errors import BadRequest, Refused, UpstreamError
from adapters.shared.toolbox import toolbox
from middleware.wrappers.emulation import Emulation
from middleware.wrappers.emulation.ask.constrain import bounded, constraint_for
from middleware.wrappers.emulation.emulated import EmulatedTools
from tests.support.text_only import (
    ADD,
    ADDED,
    BAD,
    OSLO,
    TOOLS,
    WEATHER,
    Say,
    TextOnly,
    ask,
    asked,
    heard,
    system,
    tool,
)


def test_none_offers_no_tools_and_takes_copied_blocks_out() -> None:
    answer, model = ask(f"So.\n{OSLO}\n<tool_call> is a tag.", tool_choice="none")
    assert answer.text.split() == ["So.", "<tool_call>", "is", "a", "tag."]
    assert answer.calls == []
    assert answer.finish.reason == "stop"
    assert "You can call tools" not in str(model.asked[0].messages)


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


@pytest.mark.parametrize(
    ("choice", "told", "offered"),
    [
        ("required", "You must call at least one tool.", ["get_weather", "add"]),
        (named("add"), 'You must call the tool "add".', ["add"]),
    ],
)
def test_a_demanded_call_holds_the_upstream_to_the_form(
    choice: Any, told: str, offered: list[str]
) -> None:
    text = '{"name": "add", "arguments": {"x": 1}}'
    answer, model = ask(text, tool_choice=choice)
    assert answer.calls == [ADDED]
    assert told in system(model)
    assert "Example" not in system(model)
    shape = model.asked[0].params["response_format"]["json_schema"]["schema"]
    calls = shape.get("anyOf", [shape])
    assert [one["properties"]["name"]["const"] for one in calls] == offered
    assert calls[-1]["properties"]["arguments"]["additionalProperties"] is False


def test_strings_and_arrays_get_an_end_under_a_constraint() -> None:
    tools = (tool("go", to={"type": "array", "items": {"type": "string"}}),)
    _, model = ask('{"name": "go", "arguments": {"to": []}}', tools=tools, tool_choice="required")
    shape = model.asked[0].params["response_format"]["json_schema"]["schema"]
    to = shape["properties"]["arguments"]["properties"]["to"]
    assert (to["maxItems"], to["items"]["maxLength"]) == (16, 256)


@pytest.mark.parametrize(
    ("schema", "bounds"),
    [
        ({"type": "integer"}, {"minimum": -(10**15), "maximum": 10**15}),
        ({"type": "number", "minimum": 1}, {"minimum": 1, "maximum": 10**15}),
        ({"type": ["string", "null"]}, {"maxLength": 256}),
        ({"type": "string", "maxLength": 900}, {"maxLength": 900}),
        ({"type": "integer", "enum": [1, 2]}, {"enum": [1, 2]}),
        ({"type": "boolean"}, {}),
    ],
)
def test_only_what_has_no_end_gets_one(schema: dict[str, Any], bounds: dict[str, Any]) -> None:
    within = bounded({"type": "object", "properties": {"value": schema}})["properties"]["value"]
    assert within == {"type": schema["type"], **bounds}


def test_llguidance_is_given_the_canonical_block_with_each_tools_own_arguments() -> None:
    tools = toolbox(asked(tools=(tool("go", to={"type": "string"}), tool("stop")))).tools
    way = constraint_for(tools, "lark")
    assert way is not None
    head, start, *calls = way.extra["grammar"].splitlines()
    assert (head, start) == ("%llguidance {}", 'start: "USE_TOOL\\nTOOL_NAME: " (c0 | c1)')
    assert calls[0] == 'c0: "go\\nTOOL_ARGS: " a0'
    assert orjson.loads(calls[1].partition("%json ")[2])["properties"]["to"]["maxLength"] == 256


def test_an_upstream_that_refuses_to_be_held_is_asked_plainly_and_remembered() -> None:
    model = TextOnly([Say(error=Refused("response_format is not supported")), Say(OSLO)])
    adapter = EmulatedTools(model)
    assert heard(adapter, asked(tool_choice="required")).calls == [WEATHER]
    assert heard(adapter, asked(tool_choice="required")).calls == [WEATHER]
    assert ["response_format" in one.params for one in model.asked] == [True, False, False]


def test_a_form_one_client_was_refused_is_still_asked_for_by_others() -> None:
    """Whatever it was refused for: tools, parameters, another model."""
    refusal = Refused("grammar too large")
    own = asked(tool_choice="required")
    others = [
        asked(tool_choice={"type": "function", "function": {"name": "get_weather"}}),
        asked(tool_choice="required", tools=(TOOLS[0],)),
        replace(own, params={"top_p": 0.5}),
        replace(own, model="another"),
    ]
    model = TextOnly([Say(error=refusal), Say(OSLO)])
    adapter = EmulatedTools(model)
    heard(adapter, own)
    for other in others:
        model.asked.clear()
        model.says = [Say(OSLO)]
        assert heard(adapter, other).calls == [WEATHER]
        assert "response_format" in model.asked[0].params
    model.asked.clear()
    heard(adapter, own)
    assert "response_format" not in model.asked[0].params


def test_a_refusal_of_something_else_teaches_nothing_of_the_form() -> None:
    model = TextOnly([Say(error=Refused("max_tokens is too large"))])
    adapter = EmulatedTools(model)
    with pytest.raises(Refused):
        heard(adapter, asked(tool_choice="required"))
    model.asked.clear()
    model.says = [Say(OSLO)]
    heard(adapter, asked(tool_choice="required"))
    assert "response_format" in model.asked[0].params
    assert not adapter.refused_forms


def test_a_correction_that_may_not_be_held_to_the_form_is_asked_for_without() -> None:
    refusal = Refused("response_format is not supported")
    model = TextOnly([Say(BAD), Say(error=refusal), Say(OSLO)])
    assert heard(EmulatedTools(model), asked()).calls == [WEATHER]
    assert ["response_format" in one.params for one in model.asked] == [False, True, False]


@pytest.mark.parametrize(
    ("way", "where"),
    [
        ("structured_outputs", "structured_outputs"),
        ("json_schema", "json_schema"),
        ("lark", "grammar"),
    ],
)
def test_every_way_to_be_held_has_its_own_field(way: Any, where: str) -> None:
    _, model = ask(OSLO, options=Emulation(constraint=way), tool_choice="required")
    assert where in model.asked[0].extra
    assert "response_format" not in model.asked[0].params


def test_a_demanded_call_that_is_missing_is_asked_for_once_more() -> None:
    answer, model = ask("I would rather not.", OSLO, tool_choice="required")
    assert answer.calls == [WEATHER]
    assert "a call is required" in model.asked[1].messages[-1]["content"]


def test_a_demanded_call_that_never_comes_is_an_error_before_anything_was_said() -> None:
    with pytest.raises(UpstreamError) as caught:
        ask("I would rather not.", tool_choice="required")
    assert (caught.value.status, caught.value.code) == (502, "tool_emulation_failed")


@pytest.mark.parametrize("text", ['{"x": 1}', '```json\n{"x": 1}\n```'])
def test_the_arguments_alone_are_a_call_of_the_named_tool(text: str) -> None:
    answer, model = ask(text, tool_choice=named("add"))
    assert (answer.calls, answer.text) == ([ADDED], "")
    assert len(model.asked) == 1


def test_another_tool_than_the_named_one_never_comes_out() -> None:
    with pytest.raises(UpstreamError):
        ask(OSLO, tool_choice=named("add"))


def test_a_named_tool_nobody_declared_is_refused_before_any_call() -> None:
    model = TextOnly([Say(OSLO)])
    with pytest.raises(BadRequest) as caught:
        EmulatedTools(model).stream(asked(tool_choice=named("fly")))
    assert caught.value.param == "tool_choice"
    assert not model.asked


def test_allowed_tools_are_the_only_ones_offered() -> None:
    choice = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [named("add")]},
    }
    answer, model = ask(OSLO, ADD, tool_choice=choice)
    assert "get_weather" not in system(model)
    assert answer.calls == [ADDED]


def test_json_the_client_asked_for_is_no_call() -> None:
    text = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    answer, _ = ask(text, params={"response_format": {"type": "json_object"}})
    assert (answer.text, answer.calls) == (text, [])


def test_a_custom_tool_gets_its_text_back() -> None:
    tools = ({"type": "custom", "custom": {"name": "run", "description": "runs code"}},)
    answer, _ = ask('USE_TOOL\nTOOL_NAME: run\nTOOL_ARGS: {"input": "{}"}', tools=tools)
    assert answer.calls == [("run", {})]
    assert answer.text == ""


def test_names_beyond_ascii_are_shown_and_read_as_they_are() -> None:
    answer, model = ask("USE_TOOL\nTOOL_NAME: 查询天气", tools=(tool("查询天气"),))
    assert answer.calls == [("查询天气", {})]
    assert "- 查询天气" in system(model)
