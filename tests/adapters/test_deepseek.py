"""DeepSeek's own rules: thinking, pass-back, forced calls, and the few fields it takes."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.deepseek import DeepSeek, Habits, connect, encode
from adapters.errors import BadRequest, Refused, Unavailable, from_status
from adapters.protocol import ChatRequest, Json, RequestContext
from adapters.shared.history import GO_ON, settle
from adapters.wire.http import Link, Transport
from adapters.wire.settings import Settings
from tests.support.dialogue import assistant, result, user
from tests.support.upstreams.tape import Answer, fold, run, tape

THINKER, PLAIN = "deepseek-flash", "deepseek-chat"
HELLO = (user("hello"),)
USUAL = Habits()
BETA = Habits(beta=True)
NAMED: Json = {"type": "function", "function": {"name": "f"}}


def tool(name: str = "f", **members: Any) -> Json:
    return {"type": "function", "function": {"name": name, **members}}


def request(**given: Any) -> ChatRequest:
    return ChatRequest(**{"model": THINKER, "messages": HELLO, **given})


def written(habits: Habits = USUAL, **given: Any) -> tuple[Json, list[tuple[str, str]]]:
    body, receipt = encode(request(**given), habits)
    return body, [(note.code, note.field) for note in receipt]


def refused(habits: Habits = USUAL, **given: Any) -> str | None:
    with pytest.raises(BadRequest) as caught:
        encode(request(**given), habits)
    assert caught.value.status == 400
    return caught.value.param


# Thinking --------------------------------------------------------------------------------------

ON, OFF = {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}


def about_thinking(body: Json) -> Json:
    return {name: body[name] for name in ("thinking", "reasoning_effort") if name in body}


@pytest.mark.parametrize(
    ("effort", "sent", "notes"),
    [
        (None, {}, []),
        ("none", OFF, []),
        ("minimal", {**ON, "reasoning_effort": "low"}, ["effort_approximated"]),
        ("low", {**ON, "reasoning_effort": "low"}, []),
        ("medium", {**ON, "reasoning_effort": "high"}, ["effort_approximated"]),
        ("high", {**ON, "reasoning_effort": "high"}, []),
        ("xhigh", {**ON, "reasoning_effort": "high"}, ["effort_approximated"]),
        ("max", {**ON, "reasoning_effort": "max"}, []),
    ],
)
@pytest.mark.parametrize("model", [THINKER, PLAIN])
def test_effort_is_said_in_its_three_words(
    model: str, effort: str | None, sent: Json, notes: list[str]
) -> None:
    body, said = written(model=model, params={"reasoning_effort": effort})
    assert about_thinking(body) == sent
    assert [code for code, _ in said] == notes


@pytest.mark.parametrize(
    ("asked", "effort", "sent", "notes"),
    [
        ({"type": "enabled", "budget_tokens": 9}, None, ON, ["thinking_budget_dropped"]),
        ({"type": "disabled"}, None, OFF, []),
        (True, None, ON, []),
        (False, None, OFF, []),
        ({"type": "disabled"}, "high", OFF, ["effort_dropped"]),
        ({"type": "enabled"}, "none", ON, ["effort_dropped"]),
        ({"type": "enabled"}, "max", {**ON, "reasoning_effort": "max"}, []),
    ],
)
def test_the_vendors_own_thinking_outranks_the_effort(
    asked: Any, effort: str | None, sent: Json, notes: list[str]
) -> None:
    body, said = written(extra={"thinking": asked}, params={"reasoning_effort": effort})
    assert about_thinking(body) == sent
    assert [code for code, _ in said] == notes


@pytest.mark.parametrize(
    ("model", "effort", "sent", "notes"),
    [
        (THINKER, None, OFF, []),
        (THINKER, "none", OFF, []),
        (THINKER, "high", OFF, ["thinking_dropped", "effort_dropped"]),
        (PLAIN, None, {}, []),
    ],
)
def test_a_model_that_must_not_think_does_not(
    model: str, effort: str | None, sent: Json, notes: list[str]
) -> None:
    body, said = written(Habits(may_think=False), model=model, params={"reasoning_effort": effort})
    assert about_thinking(body) == sent
    assert [code for code, _ in said] == notes


@pytest.mark.parametrize("choice", ["required", NAMED])
@pytest.mark.parametrize("effort", [None, "high"])
def test_a_forced_call_switches_thinking_off_for_the_call(
    choice: str | Json, effort: str | None
) -> None:
    asked = {"reasoning_effort": effort}
    body, notes = written(tools=(tool(),), tool_choice=choice, params=asked)
    assert (about_thinking(body), body["tool_choice"]) == (OFF, choice)
    assert notes[0] == ("thinking_disabled", "tool_choice")
    body, notes = written(model=PLAIN, tools=(tool(),), tool_choice=choice)
    assert (about_thinking(body), body["tool_choice"], notes) == ({}, choice, [])


@pytest.mark.parametrize(
    ("model", "choice", "sent"),
    [
        (THINKER, None, None),
        (THINKER, "auto", None),
        (THINKER, "none", "none"),
        (PLAIN, None, None),
        (PLAIN, "auto", "auto"),
        (PLAIN, "none", "none"),
    ],
)
def test_auto_is_left_out_while_it_thinks(model: str, choice: str | None, sent: str | None) -> None:
    assert written(model=model, tools=(tool(),), tool_choice=choice)[0].get("tool_choice") == sent


ROUND = (assistant(None, ("a", "f", "{}")), result("a", "x"))


@pytest.mark.parametrize(
    ("given", "filler"),
    [
        ({}, ""),
        ({"model": PLAIN}, None),
        ({"params": {"reasoning_effort": "none"}}, None),
        ({"model": PLAIN, "params": {"reasoning_effort": "high"}}, ""),
        ({"tools": (tool(),), "tool_choice": "required"}, None),
    ],
)
def test_every_assistant_turn_has_thoughts_while_it_thinks(given: Json, filler: str | None) -> None:
    messages = (*HELLO, *ROUND, assistant("so"), user("and?"))
    body, _ = written(messages=messages, **given)
    turns = [message for message in body["messages"] if message["role"] == "assistant"]
    assert [turn.get("reasoning_content") for turn in turns] == [filler, filler]
    assert [turn["content"] for turn in turns] == ["", "so"]


def test_the_filler_is_what_the_config_says() -> None:
    leaf = connect(settings("http://up", options={"reasoning_filler": " "}))
    [planned] = leaf.plan(request(messages=(*HELLO, *ROUND)))
    assert planned.body["messages"][1]["reasoning_content"] == " "


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("model", [THINKER, PLAIN])
def test_thoughts_a_client_echoes_go_back(name: str, model: str) -> None:
    turn = {**ROUND[0], name: "hm", "thinking_blocks": [{}]}
    body, notes = written(model=model, messages=(*HELLO, turn, ROUND[1]))
    assert body["messages"][1]["reasoning_content"] == "hm"
    assert body["messages"][1].keys() <= {"role", "content", "tool_calls", "reasoning_content"}
    assert notes == [("part_dropped", "messages[1].thinking_blocks")]


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


# Messages --------------------------------------------------------------------------------------

IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}
TEXT = {"type": "text", "text": "a"}


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        ({"role": "developer", "content": "x"}, {"role": "system", "content": "x"}),
        ({**user("x"), "name": "ann"}, {**user("x"), "name": "ann"}),
        (user([TEXT]), user("a")),
        (user([TEXT, {**TEXT, "text": "b"}]), user("a\nb")),
        (user([{**TEXT, "prompt_cache_breakpoint": {"mode": "explicit"}}]), user("a")),
        (user([TEXT, IMAGE]), user([TEXT, IMAGE])),
    ],
)
def test_messages_are_told_in_its_words(message: Json, sent: Json) -> None:
    assert written(messages=(message, *HELLO))[0]["messages"][0] == sent


def test_a_joined_message_is_named() -> None:
    _, notes = written(messages=(user([TEXT, TEXT]),))
    assert notes == [("parts_joined", "messages[0].content")]


def test_a_refusal_becomes_text() -> None:
    turn = {**assistant(), "refusal": "I will not"}
    body, notes = written(model=PLAIN, messages=(*HELLO, turn, user("please")))
    assert body["messages"][1] == assistant("I will not")
    assert notes == [("refusal_as_text", "messages[1].refusal")]


@pytest.mark.parametrize(
    ("part", "model"),
    [
        ({"type": "input_audio", "input_audio": {}}, THINKER),
        ({"type": "file", "file": {}}, THINKER),
        (IMAGE, "deepseek-v4-pro"),
    ],
)
def test_what_it_cannot_read_is_refused_where_it_stands(part: Json, model: str) -> None:
    messages = (*HELLO, user([TEXT, part]))
    assert refused(model=model, messages=messages) == "messages[1].content[1]"


def test_who_reads_images_is_for_the_config_to_say() -> None:
    messages = (user([IMAGE]),)
    assert written(Habits(vision=True), model=PLAIN, messages=messages)[0]["messages"] == [
        *messages
    ]
    assert refused(Habits(vision=False), messages=messages) == "messages[0].content[0]"


def test_an_image_in_a_result_is_refused() -> None:
    shown = {**ROUND[1], "content": [IMAGE]}
    assert refused(messages=(*HELLO, ROUND[0], shown)) == "messages[2].content[0]"


def test_only_the_beta_address_continues_an_answer() -> None:
    messages = (*HELLO, assistant("Once upon"))
    last = written(BETA, messages=messages)[0]["messages"][-1]
    assert (last["prefix"], last["content"]) == (True, "Once upon")


def test_a_last_message_of_the_assistant_is_answered_as_openai_does() -> None:
    body, notes = written(messages=(*HELLO, assistant("Once upon")))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert "prefix" not in body["messages"][1]
    assert body["messages"][2]["content"] == GO_ON
    assert notes == [("ending_added", "messages[1]")]


# Answers ---------------------------------------------------------------------------------------


def heard(message: Json, reason: str, **given: Any) -> Answer:
    body = {"choices": [{"message": message, "finish_reason": reason}]}
    pieces = [b"\n\n", b"\n", json.dumps(body).encode()]
    return run(fold(DeepSeek(tape(pieces)).stream(request(**given))))


def test_blank_lines_before_a_plain_answer_are_patience() -> None:
    answer = heard({"content": "", "reasoning_content": "hm"}, "length")
    assert (answer.reasoning, answer.reason, answer.error) == ("hm", "length", None)


def test_an_overloaded_answer_is_an_error() -> None:
    answer = heard({"content": ""}, "insufficient_system_resource")
    assert isinstance(answer.error, Unavailable)
    assert answer.error.status == 503


STREAM = (
    b": keep-alive\n\n",
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":""}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"hm"}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{"content":"hi","reasoning_content":null}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"usage":'
    b'{"prompt_tokens":9,"completion_tokens":3,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":5,'
    b'"completion_tokens_details":{"reasoning_tokens":2}}}\n\ndata: [DONE]\n\n',
)


def test_a_stream_of_thoughts_and_text() -> None:
    answer = run(fold(DeepSeek(tape(STREAM)).stream(request(call=RequestContext(streamed=True)))))
    assert (answer.reasoning, answer.text, answer.reason) == ("hm", "hi", "stop")
    assert answer.usage is not None
    assert (answer.usage.prompt, answer.usage.cached, answer.usage.reasoning) == (9, 4, 2)


@pytest.mark.parametrize(("status", "code"), [(401, "upstream_auth"), (402, "upstream_billing")])
def test_a_failure_goes_by_its_status_not_by_its_misleading_code(status: int, code: str) -> None:
    body = {"error": {"message": "no", "type": "x", "param": None, "code": "invalid_request_error"}}
    error = from_status(status, {}, json.dumps(body).encode(), "deepseek", ())
    assert (type(error), error.code, error.again) == (Refused, code, "elsewhere")


# Where it goes ---------------------------------------------------------------------------------


def settings(base_url: str, **given: Any) -> Settings:
    return Settings(Link("up", base_url, Transport()), **given)


@pytest.mark.parametrize(
    ("base_url", "beta"),
    [
        ("https://api.deepseek.com", False),
        ("https://api.deepseek.com/v1", False),
        ("https://api.deepseek.com/beta", True),
        ("https://api.deepseek.com/beta/", True),
    ],
)
def test_beta_is_an_address_and_never_the_default(base_url: str, beta: bool) -> None:
    leaf = connect(settings(base_url))
    assert leaf.habits.beta == beta
    [planned] = leaf.plan(request())
    assert planned.url == base_url.rstrip("/") + "/chat/completions"


@pytest.mark.parametrize(
    ("thinking", "may"),
    [(None, True), ("always", True), (True, True), ("off", False), (False, False)],
)
def test_the_config_may_forbid_thinking(thinking: Any, may: bool) -> None:
    abilities = {} if thinking is None else {"thinking": thinking}
    assert connect(settings("http://up", abilities=abilities)).habits.may_think == may


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
    body, receipt = encode(asked, USUAL)
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
    assert (planned.body, planned.receipt) == encode(asked, USUAL)
