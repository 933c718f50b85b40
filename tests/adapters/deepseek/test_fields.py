"""The few fields and tools DeepSeek takes; the others are named."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.deepseek import DeepSeek, Habits, encode
from adapters.protocol import Json
from adapters.shared.history import settle
from tests.adapters.deepseek.asking import (
    BETA,
    HELLO,
    NAMED,
    PLAIN,
    THINKER,
    USUAL,
    heard,
    refused,
    request,
    tool,
    written,
)
from tests.support.dialogue import assistant, result, user
from tests.support.upstreams.tape import tape

# Fields ----------------------------------------------------------------------------------------


def test_only_fields_it_knows_go_up_and_the_others_are_named() -> None:
    known = {"top_p": 0.9, "stop": ["a"], "logprobs": True, "top_logprobs": 2}
    lost = {"seed": 1, "logit_bias": {"1": 2}, "metadata": {"a": "b"}, "store": True}
    lost |= {"service_tier": "flex", "verbosity": "low", "prediction": {}, "prompt_cache_key": "k"}
    foreign = {"top_k": 4, "api_base": "evil", "enable_thinking": True, "model_list": []}
    body, notes = written(params={**known, **lost, "n": 1, "modalities": ["text"]}, extra=foreign)
    assert body == {"model": THINKER, "messages": list(HELLO), **known}
    assert sorted(notes) == sorted(("parameter_dropped", name) for name in (*lost, *foreign))


@pytest.mark.parametrize(
    ("params", "param"),
    [
        ({"n": 2}, "n"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {"voice": "a"}}, "audio"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"stop": ["a"] * 17}, "stop"),
    ],
)
def test_what_would_change_the_meaning_is_refused(params: Json, param: str) -> None:
    assert refused(params=params) == param


def test_both_limits_become_one() -> None:
    body, notes = written(params={"max_completion_tokens": 5, "max_tokens": 9})
    assert (body["max_tokens"], "max_completion_tokens" in body) == (5, False)
    assert notes == [("parameter_dropped", "max_tokens")]
    assert written(Habits(longest=7))[0]["max_tokens"] == 7


def test_sampling_is_sent_and_named_where_thinking_ignores_it() -> None:
    sampling = {"temperature": 0.2, "presence_penalty": 1, "frequency_penalty": 0}
    for model, named in ((THINKER, set(sampling)), (PLAIN, set())):
        body, notes = written(model=model, params=sampling)
        assert body.items() >= sampling.items()
        assert {field for code, field in notes if code == "sampling_ignored"} == named


@pytest.mark.parametrize(
    ("params", "sent", "noted"),
    [
        ({"user": "abc-1_X"}, "abc-1_X", False),
        ({"safety_identifier": "abc"}, "abc", False),
        ({"user": "ann@example.com"}, "ann_example_com", True),
        ({"user": "x" * 600}, "x" * 48, True),
    ],
)
def test_the_user_is_named_in_its_characters(params: Json, sent: str, noted: bool) -> None:
    body, notes = written(params=params)
    assert body["user_id"].startswith(sent)
    assert (body["user_id"] != sent) == noted == bool(notes)
    assert "user" not in body


def test_users_that_look_alike_stay_two() -> None:
    one, other = (written(params={"user": name})[0]["user_id"] for name in ("a.b", "a,b"))
    assert one != other


def test_a_schema_is_asked_for_in_the_prompt() -> None:
    schema = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "number"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    messages = ({"role": "system", "content": "Be brief."}, *HELLO)
    body, notes = written(params={"response_format": wanted}, messages=messages)
    assert body["response_format"] == {"type": "json_object"}
    assert [message["role"] for message in body["messages"]] == ["system", "system", "user"]
    assert json.dumps(schema, separators=(",", ":")) in body["messages"][1]["content"]
    assert "JSON" in body["messages"][1]["content"]
    assert notes == [("json_schema_as_prompt", "response_format")]


@pytest.mark.parametrize(
    ("said", "added"),
    [("hello", True), ("answer in JSON", False), ([{"type": "text", "text": "json"}], False)],
)
def test_json_mode_has_its_word_in_the_prompt(said: Any, added: bool) -> None:
    body, notes = written(
        params={"response_format": {"type": "json_object"}}, messages=(user(said),)
    )
    assert body["response_format"] == {"type": "json_object"}
    assert len(body["messages"]) == 1 + added
    assert bool(notes) == added
    assert "json" in json.dumps(body["messages"]).lower()


def test_a_plain_text_format_needs_no_word() -> None:
    body, notes = written(params={"response_format": {"type": "text"}})
    assert body.keys() == {"model", "messages"}
    assert notes == []


# Tools -----------------------------------------------------------------------------------------


def test_tools_go_up_as_functions_with_an_object_of_parameters() -> None:
    body, notes = written(tools=(tool("f", description=None, strict=None),))
    empty = {"type": "object", "properties": {}}
    assert body["tools"] == [tool("f", parameters=empty)]
    assert notes == []


def test_strict_tools_are_for_the_beta_address() -> None:
    tools = (tool("f", strict=True),)
    assert written(BETA, tools=tools)[0]["tools"][0]["function"]["strict"] is True
    body, notes = written(tools=tools)
    assert "strict" not in body["tools"][0]["function"]
    assert notes == [("strict_dropped", "tools.f")]


def test_more_than_128_tools_are_refused() -> None:
    tools = tuple(tool(f"f{number}") for number in range(129))
    assert len(written(tools=tools[:128])[0]["tools"]) == 128
    assert refused(tools=tools) == "tools"


def test_allowed_tools_are_filtered() -> None:
    allowed = {"mode": "auto", "tools": [NAMED]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    body, _ = written(tools=(tool("f"), tool("g")), tool_choice=choice)
    assert [declared["function"]["name"] for declared in body["tools"]] == ["f"]


def test_custom_tools_become_functions() -> None:
    custom = {"type": "custom", "custom": {"name": "run"}}
    body, notes = written(tools=(custom,))
    assert body["tools"][0]["function"]["parameters"]["required"] == ["input"]
    assert notes == [("custom_tool_as_function", "tools[0]")]


def test_one_call_at_a_time_is_kept_by_leaving_the_others_out() -> None:
    only = {"parallel_tool_calls": False}
    body, notes = written(tools=(tool(),), params=only)
    assert "parallel_tool_calls" not in body
    assert notes == []
    calls = [
        {"index": k, "id": str(k), "function": {"name": "f", "arguments": "{}"}} for k in (0, 1)
    ]
    answer = heard({"tool_calls": calls}, "tool_calls", tools=(tool(),), params=only)
    assert ([call[0] for call in answer.calls], answer.reason) == (["0"], "tool_calls")


# Properties ------------------------------------------------------------------------------------


FIELDS: Mapping[str, Any] = {
    "temperature": 1,
    "seed": 1,
    "user": "u",
    "stop": "a",
    "logit_bias": {},
    "max_tokens": 5,
    "max_completion_tokens": 6,
    "reasoning_effort": "medium",
    "parallel_tool_calls": False,
    "response_format": {"type": "json_object"},
}
SENT_AS: Mapping[str, str] = {"user": "user_id", "max_completion_tokens": "max_tokens"}


@given(st.sets(st.sampled_from(sorted(FIELDS))), st.sampled_from([THINKER, PLAIN]))
def test_no_field_vanishes_without_a_word(names: set[str], model: str) -> None:
    params = {name: FIELDS[name] for name in names}
    asked = request(model=model, tools=(tool(),), params=params)
    before = copy.deepcopy(asked)
    body, receipt, _ = encode(asked, USUAL)
    named = {note.field for note in receipt}
    for name in names - {"parallel_tool_calls"}:  # kept on the way back
        assert SENT_AS.get(name, name) in body or name in named, name
    allowed = {"model", "messages", "tools", "user_id", "thinking", *FIELDS} - {"seed", "user"}
    assert body.keys() <= allowed - {"logit_bias", "max_completion_tokens", "parallel_tool_calls"}
    assert asked == before


TURNS = st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), max_size=4)
FORMATS = [None, {"type": "json_object"}]


@given(TURNS, st.sampled_from([THINKER, PLAIN]), st.sampled_from(FORMATS))
def test_each_turn_only_adds_to_the_one_before(
    turns: list[tuple[str, str]], model: str, wanted: Json | None
) -> None:
    messages: list[Json] = [{"role": "developer", "content": "Be brief."}, user("go")]
    asked = request(model=model, tools=(tool("查询"),), params={"response_format": wanted})
    before: list[Json] = []
    for number, (argument, text) in enumerate(turns):
        said = json.dumps({"city": argument})
        messages += [assistant(None, (f"id{number}", "查询", said)), result(f"id{number}", text)]
        messages += [assistant("json" if number else "so"), user("more")]
        settled, _ = settle(messages)
        sent = encode(replace(asked, messages=settled), USUAL)[0]["messages"]
        assert sent[: len(before)] == before
        before = sent


def test_what_is_planned_is_what_is_sent() -> None:
    asked = request(params={"metadata": {"a": "b"}})
    [planned] = DeepSeek(tape([])).plan(asked)
    assert (planned.body, planned.receipt) == encode(asked, USUAL)[:2]
