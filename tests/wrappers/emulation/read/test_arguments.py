"""What a call means: which arguments; what cannot be meant is asked about."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from middleware.wrappers.emulation.emulated import EmulatedTools
from middleware.wrappers.emulation.judge.arguments import settle
from tests.support.text_only import Say, TextOnly, asked, heard, tool
from tests.wrappers.emulation.read.naming import block

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
NEEDED = {**CITY, "required": ["city"]}
OPEN: dict[str, Any] = {"type": "object", "properties": {}}


def settled(said: Any, schema: dict[str, Any], name: str = "get_weather") -> Any:
    return orjson.loads(settle(said, schema, name).text)


@pytest.mark.parametrize("word", ["arguments", "parameters", "args", "input", "params", "kwargs",
                                  "tool_args", "properties"])  # fmt: skip
def test_a_wrapper_that_the_schema_lacks_is_taken_off(word: str) -> None:
    oslo = {"city": "Oslo"}
    wrapped = {word: oslo}
    for schema in (CITY, NEEDED):
        assert settled(orjson.dumps(wrapped).decode(), schema) == oslo
        assert settled(wrapped, schema) == oslo
        assert settled({"name": "get_weather", word: oslo}, schema) == oslo
    own = {"type": "object", "properties": {word: {"type": "object"}}}
    assert settled(wrapped, own) == wrapped


def test_any_lone_wrapper_goes_where_the_schema_wants_what_is_in_it() -> None:
    wrapped = {"get_weather": {"city": "Oslo"}}
    assert settled(wrapped, NEEDED) == {"city": "Oslo"}
    assert settled(wrapped, CITY) == wrapped, "what is valid is not reinterpreted"
    assert settled({"properties": {"city": 1, "x": 2}}, CITY) == {"properties": {"city": 1, "x": 2}}


def test_arguments_that_name_another_tool_are_not_this_ones() -> None:
    with pytest.raises(ValueError, match="another tool"):
        settle({"name": "set_weather", "arguments": {"city": "Oslo"}}, CITY, "get_weather")


@pytest.mark.parametrize(
    "text",
    [
        '{"params": {"city": "Oslo"}, "name": "get_weather"}',
        '{"kwargs": {"city": "Oslo"}, "tool": "get_weather"}',
        block("get_weather", '{"params": {"city": "Oslo"}}'),
        block("get_weather", '{"properties": {"city": "Oslo"}}'),
        '<tool_call>{"name": "get_weather", "arguments": {"params": {"city": "Oslo"}}}</tool_call>',
    ],
)
def test_one_table_of_synonyms_for_every_reader(text: str) -> None:
    answer = heard(EmulatedTools(TextOnly([Say(text)])), asked())
    assert (answer.calls, answer.text) == ([("get_weather", {"city": "Oslo"})], "")


@pytest.mark.parametrize(
    "text",
    [
        '```\n{"action": "search", "action_input": "2+2"}\n```',
        "Action: search\nAction Input: 2+2",
        block("search", '"2+2"'),
        block("search", "2+2"),
    ],
)
def test_a_bare_input_of_a_tool_without_parameters_is_kept(text: str) -> None:
    answer = heard(EmulatedTools(TextOnly([Say(text)])), asked(tools=(tool("search"),)))
    assert answer.calls == [("search", {"input": "2+2"})]


@pytest.mark.parametrize("said", ["", "none", "{}", "[]", "null", '""', "N/A"])
def test_nothing_stays_nothing(said: str) -> None:
    assert settled(said, OPEN) == {}


def test_a_tool_that_takes_nothing_is_given_nothing() -> None:
    assert settled("2+2", {**OPEN, "additionalProperties": False}) == {}


LONG = "7" * 5000
FIGURE = {"type": "object", "properties": {"x": {"type": "number", "multipleOf": 0.5}}}


@pytest.mark.parametrize(
    "number", ["1e999", "-1e999", "NaN", "Infinity", "-Infinity", LONG, LONG[:400]]
)
@pytest.mark.parametrize(
    "form",
    [
        'USE_TOOL\nTOOL_NAME: add\nTOOL_ARGS: {"x": @}',
        "USE_TOOL\nTOOL_NAME: add\nTOOL_ARGS: {x: @,}",
        'USE_TOOL\nTOOL_NAME: add\nTOOL_ARGS: {"x": [@]}',
        '{"name": "add", "arguments": {"x": @}}',
        '<tool_call>{"name": "add", "arguments": [{"x": @}]}</tool_call>',
        "<|tool_call_start|>[add(x=@)]<|tool_call_end|>",
    ],
)  # fmt: skip
def test_a_number_json_does_not_have_is_asked_about_and_never_passed_on(
    number: str, form: str
) -> None:
    tools = (tool("add", x={}),)
    right = block("add", '{"x": 1}')
    answer = heard(EmulatedTools(TextOnly([Say(form.replace("@", number), size=999), Say(right)])),
                   asked(tools=tools))  # fmt: skip
    assert (answer.calls, answer.notes) == ([("add", {"x": 1})], ["tool_call_corrected"])
    answer = heard(EmulatedTools(TextOnly([Say(form.replace("@", number), size=999)])),
                   asked(tools=tools))  # fmt: skip
    assert (answer.calls, answer.notes) == ([], ["tool_repair_failed"])
    assert "add" in answer.text


def test_numbers_in_tags_are_texts_where_they_may_be() -> None:
    pairs = [("x", "NaN")]
    assert settled(pairs, {"type": "object", "properties": {"x": {}}}) == {"x": "NaN"}
    assert settled(pairs, {"type": "object", "properties": {"x": {"type": "string"}}}) == {
        "x": "NaN"
    }
    for text in ("NaN", "1e999", LONG[:400]):
        with pytest.raises(ValueError, match="number"):
            settled([("x", text)], FIGURE)
        assert settle({"x": text}, FIGURE).wrong
    assert settle([("x", LONG)], FIGURE).wrong
