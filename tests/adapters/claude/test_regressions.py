"""What other gateways were seen to get wrong about Claude, one test each."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from adapters.errors import BadRequest, Truncated
from adapters.protocol import Json, ToolCallStart
from adapters.shared.history import settle
from adapters.shared.toolbox import alias
from middleware.doors.chat.parse import parse
from tests.support.dialogue import assistant, result, user
from tests.support.upstreams.claude_wire import (
    ALWAYS,
    BETWEEN,
    MANUAL,
    UNASKED,
    WEATHER,
    begin,
    call,
    claude,
    end,
    hear,
    message,
    request,
    sent,
    sse,
    text,
)


def from_door(**body: Any) -> tuple[Json, list[str]]:
    """A client's body, through the door."""
    said = {"model": MANUAL, "messages": [user("hello")], **body}
    return sent(parse(orjson.dumps(said)).request)


def test_cut_stream_is_no_stop() -> None:
    answer = hear(sse(begin(), *text(0, "The answer is")))
    assert isinstance(answer.error, Truncated)
    assert answer.reason == ""


def test_ids_that_differ_in_odd_characters_only_stay_apart() -> None:
    calls = [("c:1", "f", "{}"), ("c|1", "f", "{}")]
    history = (user("x"), assistant(None, *calls), result("c:1", "1"), result("c|1", "2"))
    body, _ = sent(request(*history))
    used = [block["id"] for block in body["messages"][1]["content"]]
    answered = [block["tool_use_id"] for block in body["messages"][2]["content"]]
    assert len(set(used)) == 2
    assert used == answered


def test_words_between_call_and_result_stand_behind_the_result() -> None:
    history = (user("x"), assistant(None, ("a", "f", "{}")), user("hurry"), result("a", "1"))
    body, _ = sent(request(*history))
    assert [block["type"] for block in body["messages"][2]["content"]] == ["tool_result", "text"]


@pytest.mark.parametrize(
    "history",
    [
        [user("x"), assistant(None, ("a", "f", "{}"))],
        [user("x"), assistant(None, ("a", "f", "{}"), ("b", "f", "{}")), result("a", "1")],
        [user("x"), result("a", "1")],
    ],
)
def test_missing_and_orphan_results_never_reach_claude(history: list[Json]) -> None:
    with pytest.raises(BadRequest) as caught:
        settle(history)
    assert caught.value.code == "invalid_tool_history"


def test_old_function_call_and_its_result_have_one_id_in_every_turn() -> None:
    called = {**assistant(), "function_call": {"name": "f", "arguments": "{}"}}
    history = [user("x"), called, {"role": "function", "name": "f", "content": "1"}]
    functions = [{"name": "f", "parameters": {"type": "object", "properties": {}}}]
    body, _ = from_door(messages=history, functions=functions)
    longer, _ = from_door(messages=[*history, user("y")], functions=functions)
    (use,), (answered,) = (turn["content"] for turn in body["messages"][1:])
    assert use["id"] == answered["tool_use_id"]
    assert longer["messages"][1] == body["messages"][1]


def test_tool_without_arguments_streams_an_empty_object() -> None:
    answer = hear(sse(begin(), *call(0, "a", "now"), *end("tool_use")))
    assert answer.calls[0][3] == "{}"


def test_calls_count_from_zero_whatever_stands_before_them() -> None:
    uses = [{"type": "tool_use", "id": one, "name": "f", "input": {}} for one in "ab"]
    body = message({"type": "text", "text": "so"}, *uses, reason="tool_use")
    answer = hear(body, streamed=False)
    events = [event for batch in answer.batches for event in batch]
    assert [event.index for event in events if isinstance(event, ToolCallStart)] == [0, 1]


def test_strict_and_root_unions_are_not_thrown_away() -> None:
    union = {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}]}
    strict = {"type": "function", "function": {"name": "f", "strict": True, "parameters": union}}
    (tool,) = sent(request(tools=[strict]))[0]["tools"]
    assert tool["strict"] is True
    assert "a" in tool["input_schema"]["properties"]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(BadRequest, match="get_weather"):
        from_door(tools=[WEATHER, WEATHER])


def test_custom_tool_is_a_function_of_one_string() -> None:
    custom = {"type": "custom", "custom": {"name": "run_sql", "description": "Runs SQL."}}
    body, notes = from_door(tools=[custom], tool_choice={"type": "custom", **custom})
    assert body["tools"][0]["input_schema"]["required"] == ["input"]
    assert body["tool_choice"] == {"type": "tool", "name": "run_sql"}
    assert notes == ["custom_tool_as_function"]


def test_allowed_tools_are_understood() -> None:
    other = {"type": "function", "function": {"name": "other"}}
    named = {"type": "function", "function": {"name": "get_weather"}}
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named]}}
    body, _ = from_door(tools=[WEATHER, other], tool_choice=choice)
    assert [tool["name"] for tool in body["tools"]] == ["get_weather"]


def test_no_choice_goes_up_without_tools() -> None:
    assert "tool_choice" not in from_door(parallel_tool_calls=False)[0]
    with pytest.raises(BadRequest):
        from_door(tool_choice="required")


@pytest.mark.parametrize(
    ("model", "thinking"),
    [(UNASKED, {"type": "disabled"}), (BETWEEN, {"type": "between_tools"})],
)
def test_no_effort_switches_thinking_off_and_does_not_just_leave_it_out(
    model: str, thinking: Json
) -> None:
    assert sent(request(model=model, reasoning_effort="none"))[0]["thinking"] == thinking


def test_thinking_never_meets_what_it_cannot_stand_beside() -> None:
    asked: Json = {"reasoning_effort": "high", "temperature": 0.2}
    assert "thinking" not in sent(request(max_tokens=1000, **asked))[0]
    assert "temperature" not in sent(request(**asked))[0]
    assert "thinking" not in sent(request(tools=[WEATHER], choice="required", **asked))[0]


def test_json_mode_is_never_ignored_without_a_word() -> None:
    body, notes = sent(request(response_format={"type": "json_object"}))
    assert notes == ["json_object_instructed"]
    assert "JSON" in body["system"][0]["text"]


def test_schema_goes_where_it_belongs_without_a_beta() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    body, _ = sent(request(response_format=form))
    assert body["output_config"]["format"]["type"] == "json_schema"
    assert "output_format" not in body


def test_sound_is_refused() -> None:
    part = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
    with pytest.raises(BadRequest) as caught:
        from_door(messages=[user([{"type": "text", "text": "listen"}, part])])
    assert caught.value.param == "messages[0].content[1]"


def test_fifth_stop_is_refused() -> None:
    with pytest.raises(BadRequest) as caught:
        sent(request(stop=list("abcde")))
    assert caught.value.param == "stop"


def test_address_of_a_person_does_not_leave() -> None:
    body, notes = sent(request(user="li@example.com"))
    assert "example.com" not in orjson.dumps(body).decode()
    assert notes == ["user_hashed"]


def test_empty_words_of_a_user_do_not_become_others() -> None:
    body, _ = sent(request(user("a"), assistant("b"), user(""), assistant("c"), user("d")))
    texts = [block["text"] for turn in body["messages"] for block in turn["content"]]
    assert texts == ["a", "b", "c", "d"]


def test_list_of_arguments_is_not_an_input() -> None:
    history = (user("x"), assistant(None, ("a", "f", "[1,2]")), result("a", "1"))
    assert sent(request(*history))[0]["messages"][1]["content"][0]["input"] == {"_raw": "[1,2]"}


@pytest.mark.parametrize("native", ["model_context_window_exceeded", "pause_turn"])
def test_unfinished_answers_are_no_stop(native: str) -> None:
    assert hear(sse(begin(), *text(0, "a"), *end(native))).reason == "length"


def test_default_limit_is_not_the_models_maximum() -> None:
    assert sent(request())[0]["max_tokens"] == 8192
    assert sent(request(model="unheard-of"))[0]["max_tokens"] == 8192


def test_chinese_names_are_distinct_and_do_not_depend_on_their_order() -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("查询天气", "查询时间")]
    forwards = [tool["name"] for tool in sent(request(tools=tools))[0]["tools"]]
    backwards = [tool["name"] for tool in sent(request(tools=tools[::-1]))[0]["tools"]]
    assert forwards == backwards[::-1] == [alias("查询天气"), alias("查询时间")]
    assert len(set(forwards)) == 2


def test_small_limit_of_a_credential_check_does_not_fail_a_thinking_model() -> None:
    """Dify asks with max_tokens 5 whether a key works."""
    asked: Json = {"max_tokens": 5, "reasoning_effort": "high"}
    for model in (MANUAL, UNASKED, ALWAYS):
        body, _ = sent(request(model=model, **asked))
        assert body["max_tokens"] == 5
        assert "budget_tokens" not in (body.get("thinking") or {})


def test_last_round_of_an_agent_without_tools_is_still_a_conversation_with_tools() -> None:
    """Dify's agent sends its last round without the tools it used before."""
    history = (user("x"), assistant("", ("a", "get_weather", "{}")), result("a", "1"))
    body, _ = sent(request(*history))
    assert body["tools"][0]["name"] == "get_weather"
    assert body["tool_choice"] == {"type": "none"}


def test_newer_api_gets_no_field_it_refuses() -> None:
    asked = request(temperature=1, top_p=1, extra={"top_k": 5})
    body, notes = sent(asked, claude("2026-10-21"))
    assert not {"temperature", "top_p", "top_k"} & body.keys()
    assert notes == ["top_k_dropped"]
