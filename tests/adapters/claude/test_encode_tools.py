"""Tools, choices and formats as Claude takes them."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.errors import BadRequest
from adapters.protocol import Json
from tests.adapters.claude.conversations import KIMI, ROUND, named
from tests.support.upstreams.claude_wire import (
    ADAPTIVE,
    ALWAYS,
    HELLO,
    MANUAL,
    WEATHER,
    claude,
    request,
    sent,
)


def tool(name: str, **said: Any) -> Json:
    return {"type": "function", "function": {"name": name, **said}}


# Tools ------------------------------------------------------------------------------------------


def test_tool() -> None:
    body, notes = sent(request(tools=[WEATHER]))
    said = WEATHER["function"]
    assert body["tools"] == [
        {
            "name": "get_weather",
            "description": said["description"],
            "input_schema": said["parameters"],
        }
    ]
    assert "tool_choice" not in body
    assert notes == []


@pytest.mark.parametrize(
    "parameters", [None, {}, {"properties": {}}, {"type": "object", "properties": {}}]
)
@pytest.mark.parametrize("description", [None, ""])
def test_tool_without_arguments_or_description(parameters: Any, description: Any) -> None:
    body, _ = sent(request(tools=[tool("f", parameters=parameters, description=description)]))
    empty = {"type": "object", "properties": {}}
    assert body["tools"] == [{"name": "f", "input_schema": empty}]


ROOTS: list[Json] = [
    {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}]},
    {"oneOf": [{"type": "object", "properties": {"a": {"type": "string"}}}]},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}]},
    {
        "$ref": "#/$defs/A",
        "$defs": {"A": {"type": "object", "properties": {"a": {"type": "string"}}}},
    },
    {"type": "string"},
    {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
]


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: next(iter(root)))
def test_root_is_one_object_whatever_it_was_made_of(root: Json) -> None:
    body, notes = sent(request(tools=[tool("f", parameters=root)]))
    schema = body["tools"][0]["input_schema"]
    assert schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf", "$ref"} & schema.keys()
    assert notes == ["schema_root_merged"]


def test_what_the_merged_root_cannot_say_stands_in_the_description() -> None:
    asked = request(tools=[tool("f", description="Does it.", parameters=ROOTS[-1])])
    description = sent(asked)[0]["tools"][0]["description"]
    assert description.startswith("Does it.\n")
    assert "at least one" in description


STRICT = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2, "format": "city"},
        "when": {"oneOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        "near": {"$ref": "#/$defs/Place"},
    },
    "required": ["city", "when", "near"],
    "additionalProperties": False,
    "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "number"}}}},
}


def test_strict_tool_is_reduced_to_what_claude_compiles() -> None:
    body, notes = sent(request(tools=[tool("f", parameters=STRICT, strict=True)]))
    assert body["tools"][0]["strict"] is True
    assert body["tools"][0]["input_schema"] == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "(minLength 2) (format city)"},
            "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
            "near": {
                "type": "object",
                "properties": {"x": {"type": "number"}},
                "additionalProperties": False,
            },
        },
        "required": ["city", "when", "near"],
        "additionalProperties": False,
    }
    assert notes == ["schema_in_words"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "object", "properties": {"any": {}}},
        {"type": "object", "properties": {"any": True}},
        {"type": "object", "properties": {"map": {"type": "object"}}},
        {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"list": {"type": "array"}}},
        {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(24)}},
    ],
)
def test_tool_claude_cannot_be_held_to_is_sent_as_a_hint(parameters: Json) -> None:
    body, notes = sent(request(tools=[tool("f", parameters=parameters, strict=True)]))
    assert body["tools"] == [{"name": "f", "input_schema": parameters}]
    assert notes == ["strict_dropped"]


def test_strict_is_a_hint_for_models_that_do_not_compile() -> None:
    body, notes = sent(request(tools=[tool("f", strict=True)], model="claude-sonnet-4-0"))
    assert ("strict" in body["tools"][0], notes) == (False, ["strict_dropped"])


def test_only_as_many_tools_are_strict_as_claude_compiles() -> None:
    body, notes = sent(request(tools=[tool(f"f{n}", strict=True) for n in range(22)]))
    assert ["strict" in said for said in body["tools"]] == [True] * 20 + [False] * 2
    assert notes == ["strict_dropped"] * 2


@pytest.mark.parametrize(
    ("kind", "needed", "counts", "strict"),
    [
        (["string", "null"], True, (8, 8), [True, True]),
        (["string", "null"], True, (8, 9), [True, False]),
        (["string", "null"], True, (15,), [True]),
        (["string", "null"], True, (16,), [False]),
        ("string", False, (12, 12), [True, True]),
        ("string", False, (12, 13), [True, False]),
        ("string", False, (23,), [True]),
        ("string", False, (24,), [False]),
    ],
)
def test_unions_and_optional_properties_of_all_tools_count_together(
    kind: Any, needed: bool, counts: tuple[int, ...], strict: list[bool]
) -> None:
    tools: list[Json] = []
    for count in counts:
        properties = {f"p{n}": {"type": kind} for n in range(count)}
        said = {"type": "object", "properties": properties}
        said |= {"required": list(properties)} if needed else {}
        tools.append(tool(f"f{count}_{len(tools)}", strict=True, parameters=said))
    body, _ = sent(request(tools=tools))
    assert ["strict" in said for said in body["tools"]] == strict


@pytest.mark.parametrize(
    ("choice", "parallel", "sent_as"),
    [
        (None, None, None),
        ("auto", True, None),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("none", False, {"type": "none"}),
        ("required", None, {"type": "any"}),
        ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
        (named("get_weather"), None, {"type": "tool", "name": "get_weather"}),
        (
            named("get_weather"),
            False,
            {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True},
        ),
    ],
)
def test_choice(choice: Any, parallel: Any, sent_as: Any) -> None:
    body, notes = sent(request(tools=[WEATHER], choice=choice, parallel_tool_calls=parallel))
    assert (body.get("tool_choice"), notes) == (sent_as, [])
    assert body["tools"]


def test_no_choice_without_tools() -> None:
    body, _ = sent(request(choice="none", parallel_tool_calls=False))
    assert not {"tools", "tool_choice"} & body.keys()


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("required", "calling one of the tools"),
        (named("get_weather"), "calling the tool 'get_weather'"),
    ],
)
def test_model_that_cannot_be_forced_is_asked_at_the_very_end(choice: Any, words: str) -> None:
    body, notes = sent(request(model=ALWAYS, tools=[WEATHER], choice=choice))
    assert "tool_choice" not in body
    last = body["messages"][-1]
    assert last["role"] == "system"
    assert words in last["content"][0]["text"]
    assert notes == ["tool_choice_not_enforced"]
    assert body["messages"][:-1] == sent(request(model=ALWAYS))[0]["messages"]


def test_model_that_cannot_be_forced_nor_told_in_between_is_told_by_the_user() -> None:
    asked = request(model=ALWAYS, tools=[WEATHER], choice="required")
    body, _ = sent(asked, claude(able_mid_system=False))
    (turn,) = body["messages"]
    assert turn["content"][-1]["text"].startswith("[system note] ")


def allowed(mode: str, *names: str) -> Json:
    tools = [named(name) for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def test_allowed_tools_are_the_only_ones_sent() -> None:
    tools = [tool("a"), tool("b"), tool("c")]
    body, notes = sent(request(tools=tools, choice=allowed("required", "a", "c")))
    assert [said["name"] for said in body["tools"]] == ["a", "c"]
    assert (body["tool_choice"], notes) == ({"type": "any"}, [])


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_allowed_tools_are_said_in_words_where_thoughts_are_bound_to_the_tools(mode: str) -> None:
    tools = [tool("a"), tool("查询天气"), tool("c")]
    asked = request(model=ALWAYS, tools=tools, choice=allowed(mode, "a", "查询天气"))
    body, notes = sent(asked)
    assert body["tools"] == sent(request(model=ALWAYS, tools=tools))[0]["tools"]
    words = body["messages"][-1]["content"][0]["text"]
    assert f"one of these tools: a, {body['tools'][1]['name']}" in words
    assert notes == ["tool_choice_not_enforced"]


def test_tools_of_the_history_are_declared_again_and_not_to_be_called() -> None:
    body, notes = sent(request(*ROUND))
    empty = {"type": "object", "properties": {}}
    assert body["tools"] == [{"name": "get_weather", "input_schema": empty}]
    assert (body["tool_choice"], notes) == ({"type": "none"}, [])


def test_model_without_tools_refuses_them() -> None:
    with pytest.raises(BadRequest, match="emulated"):
        sent(request(tools=[WEATHER]), claude(able_tools=False))


# Structured output ------------------------------------------------------------------------------


FORM = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}


def form(schema: Any, **said: Any) -> Json:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, **said}}


def test_schema_is_enforced_where_the_model_can_be() -> None:
    body, notes = sent(request(response_format=form(FORM, description="A number.")))
    assert body["output_config"]["format"] == {
        "type": "json_schema",
        "schema": {
            "description": "A number.",
            "type": "object",
            "properties": {"n": {"type": "integer", "description": "(minimum 1)"}},
            "additionalProperties": False,
        },
    }
    assert notes == ["schema_in_words"]
    assert "system" not in body


@pytest.mark.parametrize(
    ("model", "schema"),
    [("claude-sonnet-4-0", FORM), (KIMI, FORM), (MANUAL, {"type": "object"})],
)
def test_schema_is_asked_for_in_words_where_it_cannot_be_enforced(model: str, schema: Json) -> None:
    first = {"role": "system", "content": "Be kind."}
    body, notes = sent(request(first, HELLO, model=model, response_format=form(schema)))
    assert "output_config" not in body
    assert body["system"][0]["text"] == "Be kind."
    assert '"type":"object"' in body["system"][1]["text"]
    assert notes == ["json_schema_instructed"]


@pytest.mark.parametrize("asked", [{"type": "json_object"}, form(None)])
def test_json_object_is_asked_for_in_words(asked: Json) -> None:
    body, notes = sent(request(response_format=asked))
    assert "JSON object" in body["system"][0]["text"]
    assert notes == ["json_object_instructed"]


def test_effort_and_format_share_their_place() -> None:
    asked = request(model=ADAPTIVE, reasoning_effort="low", response_format=form(FORM))
    assert sent(asked)[0]["output_config"].keys() == {"effort", "format"}
