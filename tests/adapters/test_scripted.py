"""A scripted model keeps every promise of a real one, says what it is, and never surprises."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.protocol import ChatRequest, Finish, Json, Opened, RequestContext
from adapters.scripted import KIND
from adapters.scripted.model import Scripted, connect
from adapters.scripted.values import fill, read_words
from adapters.shared.history import settle
from adapters.shared.schema import mismatch
from adapters.wire.http import Link, Transport
from tests.support.dialogue import assistant, result, user
from tests.support.fold import Answer, fold, run

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def tool(name: str, parameters: Json | None = None, description: str = "") -> Json:
    function = {"name": name, "description": description, "parameters": parameters or CITY}
    return {"type": "function", "function": function}


WEATHER = tool("get_weather", description="The weather of a city. 查询城市天气")
TIME = tool("get_time", description="The time in a city. 查询时间")
BOTH = (TIME, WEATHER)


def model(*rules: Json) -> Scripted:
    return connect(KIND.settings(Link("demo", "", Transport()), options={"rules": list(rules)}))


def ask(*messages: Json, rules: tuple[Json, ...] = (), **given: Any) -> Answer:
    settled, _ = settle(messages)
    answer = run(fold(model(*rules).stream(ChatRequest("demo", settled, **given))))
    if answer.error is not None:
        raise answer.error
    return answer


def calls(answer: Answer) -> list[tuple[str, Any]]:
    return [(name, json.loads(arguments)) for _, name, _, arguments in answer.calls]


# What it does by itself ------------------------------------------------------------------------


def test_it_says_that_it_is_scripted_and_how_to_get_a_real_model() -> None:
    answer = ask(user("hello there"))
    assert "scripted" in answer.text
    assert "config.toml" in answer.text
    assert "hello there" in answer.text
    assert answer.opened is not None
    assert answer.opened.upstream.model == "scripted"
    [planned] = model().plan(ChatRequest("demo", (user("hi"),)))
    assert planned.body["scripted"] is True


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        ("What is the weather in Paris?", [("get_weather", "Paris")]),
        ("what time is it in New York", [("get_time", "New York")]),
        ("沈阳天气怎么样？", [("get_weather", "沈阳")]),
        ("请查询沈阳和大连的天气", [("get_weather", "沈阳"), ("get_weather", "大连")]),
        ("Weather for Paris and London", [("get_weather", "Paris"), ("get_weather", "London")]),
        ('weather of "the north pole"', [("get_weather", "the north pole")]),
        ("weather, shenyang", [("get_weather", "shenyang")]),
    ],
)
def test_it_calls_the_tool_that_fits_with_the_users_words(
    asked: str, made: list[tuple[str, str]]
) -> None:
    answer = ask(user(asked), tools=BOTH)
    assert calls(answer) == [(name, {"city": city}) for name, city in made]
    assert (answer.reason, answer.text) == ("tool_calls", "")


def test_it_makes_one_call_where_only_one_is_wanted() -> None:
    answer = ask(
        user("Weather for Paris and London"), tools=BOTH, params={"parallel_tool_calls": False}
    )
    assert calls(answer) == [("get_weather", {"city": "Paris"})]


@pytest.mark.parametrize(
    ("choice", "made"),
    [
        ("none", []),
        ("required", ["get_weather"]),
        ({"type": "function", "function": {"name": "get_time"}}, ["get_time"]),
    ],
)
def test_it_obeys_the_choice_of_tool(choice: Any, made: list[str]) -> None:
    answer = ask(user("weather in Paris"), tools=BOTH, tool_choice=choice)
    assert [name for name, _ in calls(answer)] == made


ROUND = (
    user("weather in Paris"),
    assistant(None, ("a", "get_weather", '{"city":"Paris"}'), ("b", "get_time", "{}")),
    result("a", "sunny, 5 degrees"),
    result("b", "noon"),
)


def test_it_answers_with_the_results_of_its_calls() -> None:
    answer = ask(*ROUND, tools=BOTH)
    assert answer.calls == []
    assert "get_weather said sunny, 5 degrees; get_time said noon" in answer.text
    assert "cripted" in answer.text
    forced = ask(*ROUND, tools=BOTH, tool_choice="required")
    assert calls(forced) == [("get_weather", {"city": "Paris"})]


def test_a_custom_tool_gets_text() -> None:
    custom = {"type": "custom", "custom": {"name": "run_code"}}
    [(_, name, kind, text)] = ask(user("print(1)"), tools=(custom,)).calls
    assert (name, kind, text) == ("run_code", "custom", "print(1)")


def test_a_name_beyond_ascii_comes_back_as_it_is() -> None:
    answer = ask(user("沈阳天气"), tools=(tool("查询天气"),))
    assert calls(answer) == [("查询天气", {"city": "沈阳"})]


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 3}},
    "required": ["city", "days"],
}


def test_it_fills_the_schema_it_is_held_to() -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    answer = ask(user("A trip to Paris"), params={"response_format": wanted})
    assert json.loads(answer.text) == {"city": "Paris", "days": 3}
    answer = ask(user("hi"), params={"response_format": {"type": "json_object"}})
    assert json.loads(answer.text)["scripted"] is True


def test_it_thinks_aloud_only_when_asked_to() -> None:
    assert ask(user("hi")).reasoning == ""
    assert ask(user("hi"), params={"reasoning_effort": "none"}).reasoning == ""
    assert "cripted" in ask(user("hi"), params={"reasoning_effort": "low"}).reasoning


def test_it_stops_where_it_is_told_to() -> None:
    whole = ask(user("hi")).text
    short = ask(user("hi"), params={"max_tokens": 3})
    assert whole.startswith(short.text)
    assert (len(short.text.split()), short.reason) == (3, "length")
    stopped = ask(user("hi"), params={"stop": ["model", "scripted"]})
    assert (stopped.text, stopped.reason) == ("This is a ", "stop")
    assert ask(user("hi"), params={"max_tokens": 999}).reason == "stop"


def test_what_it_cannot_do_is_refused_or_named() -> None:
    refused: tuple[Json, ...] = ({"n": 2}, {"logprobs": True}, {"audio": {}})
    for params in refused:
        with pytest.raises(BadRequest):
            ask(user("hi"), params=params)
    assert ask(user("hi"), params={"seed": 1, "logprobs": False}).notes == ["parameter_dropped"]


# Rules -----------------------------------------------------------------------------------------


def test_the_first_rule_that_fits_the_last_message_answers() -> None:
    rules = (
        {"when": "hello|hi\\b", "say": "Good day."},
        {"when": "hello", "say": "never said"},
        {"when": "why (", "say": "An odd pattern is plain text.", "think": "hm"},
    )
    assert ask(user("Oh, HELLO!"), rules=rules).text == "Good day."
    odd = ask(user("why (not)"), rules=rules)
    assert (odd.text, odd.reasoning) == ("An odd pattern is plain text.", "hm")
    assert "scripted" in ask(user("bye"), rules=rules).text


def test_a_rule_without_when_fits_everything() -> None:
    assert ask(user("anything"), rules=({"say": "Yes."},)).text == "Yes."


def test_a_rule_calls_tools_and_another_reads_the_results() -> None:
    called = {"name": "get_weather", "arguments": {"city": "沈阳"}}
    rules = (
        {"when": "sunny", "say": "Take sunglasses."},
        {"when": "weather", "say": "I look.", "call": [called, {"name": "get_time"}]},
    )
    answer = ask(user("the weather?"), rules=rules, tools=BOTH)
    assert (answer.text, answer.reason) == ("I look.", "tool_calls")
    assert calls(answer) == [("get_weather", {"city": "沈阳"}), ("get_time", {})]
    assert (
        ask(*ROUND[:-1], result("b", "sunny"), rules=rules, tools=BOTH).text == "Take sunglasses."
    )


def test_a_rule_never_calls_what_is_not_offered() -> None:
    rules = ({"when": "go", "call": {"name": "launch", "arguments": "{}"}},)
    offers: tuple[Json, ...] = (
        {},
        {"tools": BOTH},
        {"tools": (tool("launch"),), "tool_choice": "none"},
    )
    for offer in offers:
        answer = ask(user("go"), rules=rules, **offer)
        assert answer.calls == []
        assert "'launch'" in answer.text
    assert calls(ask(user("go"), rules=rules, tools=(tool("launch"),))) == [("launch", {})]


@pytest.mark.parametrize(
    ("rules", "where"),
    [
        ("x", "rules"),
        (["x"], "rules[0]"),
        ([{"say": "a"}, {"when": "x"}], "rules[1]"),
        ([{"when": 1, "say": "x"}], "rules[0].when"),
        ([{"says": "x"}], "rules[0].says"),
        ([{"call": "f"}], "rules[0].call"),
        ([{"call": {"arguments": {}}}], "rules[0].call"),
        ([{"call": {"name": "f", "arguments": "[1]"}}], "rules[0].call.arguments"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_named(rules: Any, where: str) -> None:
    with pytest.raises(ValueError) as caught:
        connect(KIND.settings(Link("demo", "", Transport()), options={"rules": rules}))
    assert str(caught.value).startswith(where)


# Promises --------------------------------------------------------------------------------------


def test_it_streams_in_small_pieces_and_counts_them() -> None:
    answer = ask(user("hello there"))
    assert all(batch for batch in answer.batches)
    assert len(answer.batches) > 20
    assert answer.usage is not None
    assert answer.usage.prompt == 2
    assert answer.usage.completion == len(answer.batches) - 1
    events = [event for batch in answer.batches for event in batch]
    assert [isinstance(event, Opened) for event in events].index(True) == 0
    assert isinstance(events[-1], Finish)


def test_it_says_the_same_every_time_streamed_or_not() -> None:
    plain, streamed, again = (
        ask(user("weather in Paris"), tools=BOTH, call=RequestContext(id="r", streamed=streamed))
        for streamed in (False, True, True)
    )
    assert plain == streamed == again


SCALARS: Mapping[str, st.SearchStrategy[Any]] = {
    "string": st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={"minLength": st.integers(0, 5), "maxLength": st.integers(5, 9)},
    ),
    "integer": st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number", ["null", "integer"]])},
        optional={"minimum": st.integers(-5, 0), "maximum": st.integers(0, 5)},
    ),
    "other": st.sampled_from(
        [
            {"type": "boolean"},
            {"type": "null"},
            {"enum": ["a", 1, None]},
            {"const": {"a": [1]}},
            {"type": "string", "format": "date"},
            {"$ref": "#/$defs/thing"},
            {},
        ]
    ),
}
SCHEMAS = st.recursive(
    st.one_of(*SCALARS.values()),
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner}, optional={"minItems": st.integers(0, 3)}
        ),
        st.dictionaries(st.sampled_from(["city", "query", "名"]), inner, max_size=3).map(
            lambda known: {"type": "object", "properties": known, "required": sorted(known)}
        ),
        st.lists(inner, min_size=1, max_size=2).map(lambda choices: {"anyOf": choices}),
    ),
    max_leaves=8,
)


@given(SCHEMAS, st.sampled_from(["", "weather in Paris 12", "沈阳和大连", '"a" 3.5']))
def test_whatever_it_fills_fits_the_schema(schema: Json, text: str) -> None:
    defined = {**schema, "$defs": {"thing": {"type": "integer"}}}
    assert mismatch(fill(defined, read_words(text)), defined) is None


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "enum", "anyOf", "required", "minLength"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["type", "properties", "required", "anyOf"]), ODD))
def test_no_schema_brings_it_down(schema: Json) -> None:
    [(_, arguments)] = calls(ask(user("go"), tools=(tool("f", schema or None),)))
    assert isinstance(arguments, dict)
