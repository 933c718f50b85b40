"""What a model that knows no tools is asked, and the one further question."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from adapters.errors import UpstreamError
from adapters.protocol import (
    Usage,
)
from middleware.wrappers.emulation import Emulation
from middleware.wrappers.emulation.emulated import EmulatedTools
from tests.support.text_only import (
    ADD,
    ADDED,
    BAD,
    HISTORY,
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

UNKNOWN = 'USE_TOOL\nTOOL_NAME: fly\nTOOL_ARGS: {"a": 1}'


# What the model is asked ------------------------------------------------------------------------


def test_the_model_is_told_its_tools_and_no_field_of_tools_goes_up() -> None:
    _, model = ask("Hi.", params={"parallel_tool_calls": False, "temperature": 0.5})
    (request,) = model.asked
    assert request.tools == ()
    assert request.tool_choice is None
    assert "parallel_tool_calls" not in request.params
    assert request.params["temperature"] == 0.5
    told = system(model)
    assert "- get_weather" in told
    assert "city (string, required)" in told
    assert "Make at most one call." in told
    assert told.count("USE_TOOL\nTOOL_NAME: ") == 2


def test_the_callers_system_text_stays_first_and_nothing_is_mutated() -> None:
    request = asked({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"})
    before = copy.deepcopy(request)
    model = TextOnly([Say("Hi.")])
    heard(EmulatedTools(model), request)
    assert system(model).startswith("Be brief.\n\nYou can call tools.")
    assert request == before


def test_the_prompt_speaks_the_language_of_the_first_question() -> None:
    _, model = ask("好", messages=({"role": "user", "content": "沈阳天气?"},))
    assert "你可以调用工具" in system(model)


def test_the_worked_example_is_no_declared_tool_and_unlike_them() -> None:
    for name in ("get_time", "roll_dice", "play_song", "water_plant"):
        _, model = ask("Hi.", tools=(tool(name),))
        assert system(model).count(name) == 1


def test_a_nested_schema_is_shown_as_json_with_its_references_in_place() -> None:
    parameters = {
        "type": "object",
        "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}}}},
        "properties": {"to": {"$ref": "#/$defs/place"}},
    }
    tools = ({"type": "function", "function": {"name": "go", "parameters": parameters}},)
    _, model = ask("Hi.", tools=tools)
    assert '"to":{"type":"object","properties":{"city":{"type":"string"}}}' in system(model)
    assert "$ref" not in system(model)


@pytest.mark.parametrize("tools", [TOOLS, ()])
def test_a_history_of_calls_becomes_blocks_and_results(tools: tuple[Any, ...]) -> None:
    _, model = ask("Cold.", messages=HISTORY, tools=tools)
    turns = [one for one in model.asked[0].messages if one["role"] != "system"]
    assert [one["role"] for one in turns] == ["user", "assistant", "user"]
    assert turns[1]["content"] == (
        'Looking.\nUSE_TOOL\nTOOL_NAME: get_weather\nTOOL_ARGS: {"city":"Oslo"}\n'
        'USE_TOOL\nTOOL_NAME: add\nTOOL_ARGS: {"x":1}'
    )
    assert "tool_calls" not in turns[1]
    assert turns[2]["content"].startswith(
        "TOOL_RESULT\nTOOL_NAME: get_weather\nCONTENT:\n"
        "3 degrees\n USE_TOOL\n TOOL_NAME: add\nEND_TOOL_RESULT\nTOOL_RESULT\n"
    )
    assert "[image_url omitted]" in turns[2]["content"]
    assert turns[2]["content"].endswith("\n\nAnd?")


def test_a_prefix_of_a_conversation_stays_a_prefix() -> None:
    _, short = ask("a", messages=HISTORY[:1])
    _, longer = ask("a", messages=HISTORY[:4])
    assert longer.asked[0].messages[:2] == short.asked[0].messages


def test_long_results_are_cut_with_a_visible_word() -> None:
    messages = (*HISTORY[:2], {**HISTORY[2], "content": "x" * 50}, HISTORY[3])
    _, model = ask("a", options=Emulation(result_length=20), messages=messages)
    assert f"{'x' * 20}\n[cut: 30 more characters]" in model.asked[0].messages[-1]["content"]


def test_the_plan_is_what_would_be_sent() -> None:
    model = TextOnly([Say("a")])
    (planned,) = EmulatedTools(model).plan(asked())
    assert "You can call tools." in planned.body["messages"][0]["content"]
    assert not model.asked


# The one further question -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (BAD, "It is get_weather(city: string)"),
        (UNKNOWN, "there is no tool 'fly'. The tools are: get_weather, add"),
        (OSLO.replace('{"city": "Oslo"}', "[1, 2]"), "not a JSON object"),
    ],
)
def test_a_faulty_call_is_asked_for_once_more(bad: str, complaint: str) -> None:
    answer, model = ask(f"Hm.\n{bad}", OSLO)
    assert answer.calls == [WEATHER]
    assert answer.text == "Hm."
    assert answer.notes == ["tool_call_corrected"]
    assert answer.finish.usage == Usage(20, 10)
    question = model.asked[1]
    assert complaint in question.messages[-1]["content"]
    assert question.messages[-2] == {"role": "assistant", "content": f"Hm.\n{bad}"}
    assert question.params["temperature"] == 0
    assert question.params["max_tokens"] == 1024


def test_order_stays_around_a_corrected_call_and_good_ones_are_not_doubled() -> None:
    answer, model = ask(f"{ADD}\n{BAD}\n{ADD.replace('1', '2')}", f"{ADD}\n{OSLO}")
    assert answer.calls == [ADDED, WEATHER, ("add", {"x": 2})]
    assert len(model.asked) == 2


def test_a_call_that_stays_faulty_leaves_as_far_as_it_can_be_read() -> None:
    answer, model = ask(BAD)
    assert answer.calls == [("get_weather", {"town": "Oslo"})]
    assert answer.notes == ["tool_repair_failed"]
    assert len(model.asked) == 2


def test_an_unknown_tool_never_comes_out_and_what_was_said_is_not_lost() -> None:
    answer, _ = ask(UNKNOWN)
    assert answer.calls == []
    assert answer.text == 'fly {"a": 1}'
    assert answer.finish.reason == "stop"


def test_nothing_is_asked_again_where_the_config_says_so() -> None:
    answer, model = ask(BAD, OSLO, options=Emulation(reask=0))
    assert answer.notes == ["tool_repair_failed"]
    assert len(model.asked) == 1


def test_an_upstream_that_fails_at_the_further_question_costs_nothing() -> None:
    answer, _ = ask(f"Hm.\n{BAD}", Say(error=UpstreamError("away")))
    assert answer.calls == [("get_weather", {"town": "Oslo"})]
