"""What goes up to an OpenAI-compatible endpoint: OpenAI's own words, in the dialect it knows."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.compatible import DENIED, KIND, Compatible, connect, encode
from adapters.compatible.dialect import Dialect, dialect
from adapters.errors import BadRequest
from adapters.kind import Settings
from adapters.protocol import Json, RequestContext
from adapters.shared.history import settle
from adapters.wire.http import Link, Transport
from tests.adapters.compatible.asking import FULL, HELLO, request, tool, written
from tests.support.dialogue import assistant, result, user
from tests.support.fold import fold, run
from tests.support.upstreams.tape import tape


def settings(base_url: str, **given: Any) -> Settings[Any]:
    return KIND.settings(Link("up", base_url, Transport()), **given)


# Fields ----------------------------------------------------------------------------------------


def test_openais_fields_go_up_as_they_were_given() -> None:
    params = {
        "temperature": 0.5,
        "stop": "X",
        "seed": 1,
        "logit_bias": {"1": 2},
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}},
        "reasoning_effort": "max",
        "user": "u@example.com",
        "metadata": {"a": "b"},
        "modalities": ["text", "audio"],
        "web_search_options": {},
    }
    body, notes = written(params=params)
    assert body == {"model": "their-model", "messages": list(HELLO), **params}
    assert notes == []


def test_a_field_that_is_null_is_absent() -> None:
    body, notes = written(params={"temperature": None, "n": None, "stop": None}, extra={"a": None})
    assert body.keys() == {"model", "messages"}
    assert notes == []


def test_further_fields_pass_but_not_those_that_steer_a_gateway() -> None:
    extra: Json = dict.fromkeys(DENIED, "evil")
    extra |= {"aws_region_name": "x", "vertex_credentials": "/etc/passwd", "litellm_params": {}}
    body, notes = written(extra={**extra, "top_k": 4, "enable_thinking": False})
    assert {name: body[name] for name in body if name not in ("model", "messages")} == {
        "top_k": 4,
        "enable_thinking": False,
    }
    assert sorted(notes) == sorted(("parameter_dropped", name) for name in extra)


def test_openai_itself_never_sees_a_field_it_would_refuse() -> None:
    body, notes = written(Dialect(extra_fields=False), extra={"top_k": 4}, params={"seed": 1})
    assert body.keys() == {"model", "messages", "seed"}
    assert notes == [("parameter_dropped", "top_k")]


@pytest.mark.parametrize(
    ("given", "spoken", "sent", "notes"),
    [
        ({"max_tokens": 5}, Dialect(), {"max_tokens": 5}, []),
        ({"max_completion_tokens": 5}, Dialect(), {"max_completion_tokens": 5}, []),
        (
            {"max_completion_tokens": 5, "max_tokens": 9},
            Dialect(),
            {"max_completion_tokens": 5},
            [("parameter_dropped", "max_tokens")],
        ),
        ({"max_completion_tokens": 5}, Dialect(limit_field="max_tokens"), {"max_tokens": 5}, []),
        (
            {"max_tokens": 5},
            Dialect(limit_field="max_completion_tokens"),
            {"max_completion_tokens": 5},
            [],
        ),
        ({}, Dialect(longest=7), {"max_tokens": 7}, []),
        ({"max_tokens": 5}, Dialect(longest=7), {"max_tokens": 5}, []),
        ({}, Dialect(), {}, []),
    ],
)
def test_the_longest_answer_has_one_name(
    given: Json, spoken: Dialect, sent: Json, notes: list[tuple[str, str]]
) -> None:
    body, said = written(spoken, params=given)
    assert {name: body[name] for name in body if "max" in name} == sent
    assert said == notes


def test_a_stream_always_asks_for_its_usage() -> None:
    streamed = RequestContext(streamed=True)
    asked = {"include_usage": False, "include_obfuscation": False}
    body, _ = written(call=streamed, params={"stream_options": asked})
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True, "include_obfuscation": False}
    assert written(call=streamed)[0]["stream_options"] == {"include_usage": True}
    assert "stream_options" not in written(Dialect(stream_options=False), call=streamed)[0]
    assert written(params={"stream_options": asked})[0].keys() == {"model", "messages"}


def test_more_than_one_choice_is_refused_and_one_is_not_said() -> None:
    assert "n" not in written(params={"n": 1})[0]
    with pytest.raises(BadRequest) as caught:
        written(params={"n": 2})
    assert (caught.value.param, caught.value.code) == ("n", "unsupported_parameter")


# Messages --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        ({"role": "developer", "content": "Be brief."}, {"role": "system", "content": "Be brief."}),
        (assistant("hi"), assistant("hi")),
        ({**assistant("hi"), "tool_calls": []}, assistant("hi")),
        ({**assistant("hi"), "tool_calls": None, "refusal": None}, assistant("hi")),
        ({**assistant(), "refusal": "no"}, {**assistant(), "refusal": "no"}),
        ({**assistant(), "reasoning_content": ""}, assistant("")),
        ({**result("a", "x"), "is_error": True}, result("a", "x")),
        ({"role": "user", "content": [{"type": "file", "file": {}}]}, None),
    ],
)
def test_messages_are_openais_own(message: Json, sent: Json | None) -> None:
    body, notes = written(messages=(*HELLO, message))
    assert body["messages"][1] == (sent or message)
    assert notes == []


def test_a_turn_that_only_calls_has_a_null_content() -> None:
    turn = assistant(None, ("a", "f", "{}"))
    del turn["content"]
    body, _ = written(messages=(*HELLO, turn, result("a", "x")))
    assert body["messages"][1] == assistant(None, ("a", "f", "{}"))


def test_openai_keeps_its_developer_role() -> None:
    message = {"role": "developer", "content": "Be brief."}
    assert written(FULL, messages=(message,))[0]["messages"] == [message]


def test_thoughts_go_back_only_where_they_are_wanted() -> None:
    turn = {**assistant("hi"), "reasoning_content": "hm", "thinking_blocks": [{"a": 1}]}
    body, notes = written(messages=(*HELLO, turn, user("and?")))
    assert body["messages"][1] == assistant("hi")
    assert notes == [
        ("reasoning_dropped", "messages[1].reasoning_content"),
        ("reasoning_dropped", "messages[1].thinking_blocks"),
    ]
    body, notes = written(Dialect(reasoning_echo=True), messages=(*HELLO, turn, user("and?")))
    assert (body["messages"][1], notes) == (turn, [])


@pytest.mark.parametrize("opened", [{"secrets": ("canary-1234",)}, {"opened_by": "bearer"}])
def test_an_error_inside_an_answer_never_repeats_a_key(opened: Json) -> None:
    said = {"error": {"message": "wrong key: canary-1234", "code": 401}}
    link = replace(tape([json.dumps(said).encode()]), **opened)
    asked = request(call=RequestContext(key="canary-1234"))
    answer = run(fold(Compatible(link).stream(asked)))
    assert answer.error is not None
    assert "canary" not in answer.error.message
    assert "wrong key" in answer.error.message


# Where it goes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("http://up/v1", "http://up/v1/chat/completions"),
        ("http://up/v1/", "http://up/v1/chat/completions"),
        ("http://up", "http://up/chat/completions"),
        ("http://up/v1/chat/completions", "http://up/v1/chat/completions"),
        ("http://up/v1/chat/completions/", "http://up/v1/chat/completions"),
    ],
)
def test_the_address_is_taken_as_it_is_given(base_url: str, url: str) -> None:
    [planned] = connect(settings(base_url)).plan(request())
    assert planned.url == url


@pytest.mark.parametrize(
    ("base_url", "own"),
    [
        ("https://api.openai.com/v1", True),
        ("https://eu.api.openai.com/v1", True),
        ("https://me.openai.azure.com/openai/v1", True),
        ("https://api.openai.com.evil.example/v1", False),
        ("https://evilopenai.com/v1", False),
        ("https://openrouter.ai/api/v1", False),
        ("http://127.0.0.1:8000/v1", False),
    ],
)
def test_openais_own_hosts_are_spoken_to_in_full(base_url: str, own: bool) -> None:
    spoken = dialect(settings(base_url))
    assert (spoken.custom_tools, spoken.allowed_tools, spoken.developer_role) == (own, own, own)
    assert spoken.extra_fields is not own
    assert spoken.limit_field == ("max_completion_tokens" if own else "")


def test_the_config_knows_better_than_the_address() -> None:
    said = {"developer_role": True, "limit_field": "max_tokens", "vision": True}
    spoken = dialect(settings("http://up/v1", abilities=said, options={"max_tokens": 9}))
    asked = Dialect(developer_role=True, limit_field="max_tokens", longest=9, vision=True)
    assert spoken == asked


# Properties ------------------------------------------------------------------------------------


OWN: Mapping[str, Any] = {
    "temperature": 1,
    "n": 1,
    "stop": ["a"],
    "user": "u",
    "store": True,
    "stream_options": {},
    "max_tokens": 5,
    "max_completion_tokens": 6,
    "parallel_tool_calls": True,
}
EXTRA: Mapping[str, Any] = {
    "top_k": 3,
    "api_key": "evil",
    "headers": {"a": "b"},
    "aws_profile": "x",
}
CARRIED_ELSEWHERE = {"n", "stream_options"}


def some(fields: Mapping[str, Any]) -> st.SearchStrategy[Json]:
    return st.sets(st.sampled_from(sorted(fields))).map(
        lambda names: {name: fields[name] for name in names}
    )


@given(some(OWN), some(EXTRA), st.booleans(), st.booleans())
def test_no_field_vanishes_without_a_word(
    params: Json, extra: Json, tools: bool, own: bool
) -> None:
    asked = request(tools=(tool("f"),) if tools else (), params=params, extra=extra)
    before = copy.deepcopy(asked)
    body, receipt, _ = encode(asked, Dialect(extra_fields=not own))
    named = {note.field for note in receipt}
    elsewhere = CARRIED_ELSEWHERE | ({"parallel_tool_calls"} if not tools else set())
    for name in (params.keys() | extra.keys()) - elsewhere:
        assert (name in body) != (name in named), name
    assert asked == before


TURNS = st.lists(
    st.tuples(st.sampled_from(["查询", "f"]), st.text(max_size=4), st.text(max_size=4)), max_size=4
)


@given(TURNS, st.sampled_from([Dialect(), FULL]))
def test_each_turn_only_adds_to_the_one_before(
    turns: list[tuple[str, str, str]], spoken: Dialect
) -> None:
    messages: list[Json] = [{"role": "developer", "content": "Be brief."}, user("go")]
    asked = request(tools=(tool("查询"), tool("f")))
    before: list[Json] = []
    for number, (name, argument, text) in enumerate(turns):
        said = json.dumps({"city": argument})
        messages += [
            assistant(text or None, (f"id{number}", name, said)),
            result(f"id{number}", text),
        ]
        settled, _ = settle(messages)
        sent = encode(replace(asked, messages=settled), spoken)[0]["messages"]
        assert sent[: len(before)] == before
        before = sent


def test_what_is_planned_is_what_is_sent() -> None:
    asked = request(tools=(tool("f"),), params={"metadata": {"a": "b"}}, extra={"api_key": "x"})
    [planned] = Compatible(tape([]), Dialect()).plan(asked)
    assert (planned.body, planned.receipt) == encode(asked, Dialect())[:2]
