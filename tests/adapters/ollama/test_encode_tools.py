"""Tools and formats in Ollama's words."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.errors import BadRequest
from adapters.ollama.abilities import Abilities
from adapters.protocol import Json
from tests.adapters.ollama.asking import ROUND, body, codes, encoded, tool

# Tools -----------------------------------------------------------------------------------------


def test_a_tool_keeps_what_the_server_reads_and_its_own_description() -> None:
    parameters: Json = {
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date", "description": "When"},
            "unit": {"const": "C"},
            "at": {"oneOf": [{"$ref": "#/$defs/point"}, {"type": "null"}]},
        },
        "required": ["day"],
        "additionalProperties": False,
        "$defs": {"point": {"type": "array", "items": {"type": "number", "minimum": -180}}},
    }
    given_tool = tool(**parameters)
    given_tool["function"] |= {"description": "The weather", "strict": True}
    found, receipt = encoded(tools=[given_tool])
    assert found["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "The weather",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "day": {"type": "string", "description": "When (format date)"},
                        "unit": {"enum": ["C"]},
                        "at": {
                            "anyOf": [
                                {
                                    "type": "array",
                                    "items": {"type": "number", "description": "(minimum -180)"},
                                },
                                {"type": "null"},
                            ]
                        },
                    },
                    "required": ["day"],
                },
            },
        }
    ]
    assert codes(receipt) == ["schema_reduced", "strict_not_enforced"]
    assert "format, minimum" in receipt[0].text


def test_a_root_that_is_a_choice_is_merged_and_told() -> None:
    choice = [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]
    found, receipt = encoded(tools=[tool(anyOf=choice)])
    assert found["tools"][0]["function"] == {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"a": {}, "b": {}}},
    }
    assert codes(receipt) == ["schema_merged"]


def test_a_tool_without_parameters_and_one_in_chinese_are_sent() -> None:
    found = body(tools=[{"type": "function", "function": {"name": "查询天气"}}])
    function = found["tools"][0]["function"]
    assert function["name"].isascii()
    assert function["parameters"] == {"type": "object", "properties": {}}


def test_choice_none_drops_the_tools_and_keeps_the_calls() -> None:
    found = body(*ROUND, tools=[tool()], tool_choice="none")
    assert "tools" not in found
    assert found["messages"][1]["tool_calls"]


def test_a_named_choice_sends_only_that_tool_and_holds_the_model_to_it() -> None:
    named = {"type": "function", "function": {"name": "b"}}
    found = body(tools=[tool("a"), tool("b", type="object")], tool_choice=named)
    assert [one["function"]["name"] for one in found["tools"]] == ["b"]
    assert found["format"] == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "enum": ["b"]},
            "arguments": {"type": "object", "properties": {}},
        },
        "required": ["name", "arguments"],
    }


def test_choice_required_holds_the_model_to_any_of_the_tools() -> None:
    kept = {"const": 1, "minimum": 0}
    strict = {
        "properties": {"x": {**kept, "multipleOf": 1}},
        "additionalProperties": False,
    }
    found = body(tools=[tool("a"), tool("b", **strict)], tool_choice="required")
    form = found["format"]["properties"]
    assert form["name"]["enum"] == ["a", "b"]
    assert form["arguments"]["anyOf"][1] == {
        "type": "object",
        "properties": {"x": kept},
        "additionalProperties": False,
    }
    assert len(found["tools"]) == 2


@pytest.mark.parametrize("choice", ["none", None])
def test_tools_for_a_model_that_cannot_call(choice: str | None) -> None:
    able = Abilities(tools=False)
    if choice == "none":
        assert "tools" not in body(able=able, tools=[tool()], tool_choice="none")
        return
    with pytest.raises(BadRequest, match='tools = "emulated"') as caught:
        body(able=able, tools=[tool()])
    assert caught.value.param == "tools"


def test_a_model_nobody_knows_is_given_the_tools() -> None:
    assert body(able=Abilities(), tools=[tool()])["tools"]


# Formats ---------------------------------------------------------------------------------------


SCHEMA = {"type": "object", "properties": {"answer": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}}


@pytest.mark.parametrize(
    ("fields", "form"),
    [
        ({"response_format": {"type": "json_object"}}, "json"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, SCHEMA),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "json"),
        ({"response_format": {"type": "text"}}, None),
        ({"extra": {"format": "json"}}, "json"),
    ],
)
def test_a_form_of_the_answer(fields: Json, form: Any) -> None:
    found, receipt = encoded(**fields)
    assert found.get("format") == form
    assert receipt == ()


def test_two_forms_of_the_answer_are_one_too_many() -> None:
    found, receipt = encoded(response_format={"type": "json_object"}, extra={"format": {}})
    assert found["format"] == "json"
    assert [(note.field, note.text) for note in receipt] == [
        ("format", "response_format says what it is")
    ]


def test_what_the_server_cannot_be_held_to_is_named() -> None:
    schema = {"type": "string", "pattern": r"^\d+$"}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    for name, sent in (
        ("response_format", {"response_format": form}),
        ("format", {"extra": {"format": schema}}),
    ):
        found, receipt = encoded(**sent)
        assert found["format"] == {"type": "string"}
        assert [(note.code, note.field) for note in receipt] == [("schema_reduced", name)]


def test_a_demanded_call_is_asked_for_in_what_the_grammar_can_say() -> None:
    quoted = tool(properties={'a "b"': {"type": "string"}})
    found = body(tools=[quoted], tool_choice="required")
    assert found["format"]["properties"]["arguments"] == {"type": "object"}


def test_a_form_beside_tools_leaves_room_for_a_call() -> None:
    form = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
    call, answer = body(tools=[tool()], response_format=form)["format"]["anyOf"]
    assert call["properties"]["name"]["enum"] == ["get_weather"]
    assert answer == {"type": "object", "properties": {"answer": {}}}
    either = body(tools=[tool()], response_format={"type": "json_object"})["format"]["anyOf"]
    assert either[1] == {"type": "object"}
