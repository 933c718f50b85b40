"""Every field of a request: carried, lost by name, or refused with what to send instead."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.claude.capabilities import capability
from adapters.claude.encode import LONGEST_PLAIN, must_stream
from adapters.errors import BadRequest
from adapters.protocol import Json
from tests.support.dialogue import assistant, result, user
from tests.support.upstreams.claude_wire import (
    ADAPTIVE,
    ALWAYS,
    BETWEEN,
    HELLO,
    MANUAL,
    PLAIN,
    UNASKED,
    WEATHER,
    claude,
    request,
    sent,
)

KIMI = "kimi-k2"
NEW_API = claude("2026-10-21")


def tool(name: str, **said: Any) -> Json:
    return {"type": "function", "function": {"name": name, **said}}


def named(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}


def test_plain_request_is_asked_plainly_and_holds_nothing_else() -> None:
    body, notes = sent(request(HELLO))
    assert body == {
        "model": MANUAL,
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
    }
    assert notes == []


# Scalars ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "model", "tokens", "notes"),
    [
        ({}, MANUAL, 8192, []),
        ({}, PLAIN, 4096, []),
        ({"max_tokens": 7}, MANUAL, 7, []),
        ({"max_completion_tokens": 8}, MANUAL, 8, []),
        ({"max_completion_tokens": 8, "max_tokens": 7}, MANUAL, 8, ["parameter_dropped"]),
        ({"max_completion_tokens": 8, "max_tokens": 8}, MANUAL, 8, []),
        ({}, UNASKED, 8192 + 8192, []),
        ({"reasoning_effort": "none"}, UNASKED, 8192, []),
        ({"reasoning_effort": "low"}, MANUAL, 8192 + 2048, []),
        ({"reasoning_effort": "max"}, "claude-opus-4-1", 32_000, ["thinking_budget_lowered"]),
    ],
)
def test_max_tokens(asked: Json, model: str, tokens: int, notes: list[str]) -> None:
    body, found = sent(request(model=model, **asked))
    assert (body["max_tokens"], found) == (tokens, notes)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("limit", [0, -5])
def test_limit_of_nothing_is_refused(name: str, limit: int) -> None:
    asked: Json = {name: limit}
    with pytest.raises(BadRequest) as caught:
        sent(request(**asked))
    assert caught.value.param == name


def test_config_gives_the_room_where_the_client_does_not() -> None:
    assert sent(request(), claude(max_tokens=100))[0]["max_tokens"] == 100
    assert sent(request(max_tokens=5), claude(max_tokens=100))[0]["max_tokens"] == 5


@pytest.mark.parametrize(
    ("asked", "kept", "notes"),
    [
        ({"temperature": 0}, {"temperature": 0}, []),
        ({"temperature": 0.3, "top_p": 1}, {"temperature": 0.3}, []),
        ({"temperature": 1, "top_p": 0.3}, {"top_p": 0.3}, []),
        ({"temperature": 1.5}, {}, ["temperature_clamped"]),
        ({"temperature": 0.3, "top_p": 0.9}, {"temperature": 0.3}, ["top_p_dropped"]),
        ({"temperature": 0.3, "extra": {"top_k": 5}}, {"temperature": 0.3, "top_k": 5}, []),
        ({"temperature": 0.3, "reasoning_effort": "low"}, {}, ["temperature_dropped"]),
        ({"temperature": 1, "top_p": 0.95, "reasoning_effort": "low"}, {"top_p": 0.95}, []),
        ({"extra": {"top_k": 5}, "reasoning_effort": "low"}, {}, ["top_k_dropped"]),
    ],
)
def test_sampling(asked: Json, kept: Json, notes: list[str]) -> None:
    body, found = sent(request(**asked))
    assert {k: v for k, v in body.items() if k in ("temperature", "top_p", "top_k")} == kept
    assert found == notes


@pytest.mark.parametrize("model", [UNASKED, ALWAYS, "claude-opus-4-7"])
def test_models_without_sampling_get_none_and_only_what_was_meant_is_named(model: str) -> None:
    body, notes = sent(request(model=model, temperature=0.2, top_p=1, extra={"top_k": 3}))
    assert not {"temperature", "top_p", "top_k"} & body.keys()
    assert notes == ["temperature_dropped", "top_k_dropped"]


def test_newer_api_version_takes_no_sampling_even_at_its_defaults() -> None:
    body, notes = sent(request(temperature=0.2, top_p=0.5), NEW_API)
    assert not {"temperature", "top_p"} & body.keys()
    assert notes == ["temperature_dropped", "top_p_dropped"]


@pytest.mark.parametrize(
    ("stop", "sequences", "notes"),
    [
        ("END", ["END"], []),
        (["a", "b"], ["a", "b"], []),
        (["\n", "END", " "], ["END"], ["stop_blank_dropped"]),
        ("\n\n", None, ["stop_blank_dropped"]),
    ],
)
def test_stop(stop: Any, sequences: Any, notes: list[str]) -> None:
    body, found = sent(request(stop=stop))
    assert (body.get("stop_sequences"), found) == (sequences, notes)


@pytest.mark.parametrize(
    ("asked", "user_id", "notes"),
    [
        ({"user": "3f2c9f3e-8b1a-4c1e-9d50-1a2b3c4d5e6f"}, None, []),
        ({"user": "user_01ABCDEFGHJKLM"}, None, []),
        ({"user": "li@example.com"}, "hash", ["user_hashed"]),
        ({"user": "Li Hua"}, "hash", ["user_hashed"]),
        ({"user": "13812345678901234"}, "hash", ["user_hashed"]),
        ({"safety_identifier": "a1b2c3d4e5f6a7b8", "user": "x"}, None, ["parameter_dropped"]),
        ({"safety_identifier": "a1b2c3d4e5f6a7b8"}, None, []),
    ],
)
def test_user(asked: Json, user_id: str | None, notes: list[str]) -> None:
    body, found = sent(request(**asked))
    given = next(iter(asked.values()))
    expected = hashlib.sha256(given.encode()).hexdigest() if user_id == "hash" else given
    assert (body["metadata"], found) == ({"user_id": expected}, notes)


@pytest.mark.parametrize(
    ("tier", "kept", "notes"),
    [
        ("auto", None, []),
        ("standard_only", "standard_only", []),
        ("flex", None, ["parameter_dropped"]),
    ],
)
def test_service_tier(tier: str, kept: str | None, notes: list[str]) -> None:
    body, found = sent(request(service_tier=tier))
    assert (body.get("service_tier"), found) == (kept, notes)


LOST: Json = {
    "seed": 5,
    "frequency_penalty": 0.5,
    "presence_penalty": 0.5,
    "logit_bias": {"5": 1},
    "metadata": {"a": "b"},
    "store": True,
    "verbosity": "low",
    "prediction": {"type": "content", "content": "x"},
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "moderation": {"model": "x"},
}


@pytest.mark.parametrize("name", LOST)
def test_field_claude_does_not_have_is_lost_by_name(name: str) -> None:
    (planned,) = claude().plan(request(**{name: LOST[name]}))
    assert [(note.code, note.field) for note in planned.receipt] == [("parameter_dropped", name)]
    assert planned.body.keys() == {"model", "max_tokens", "messages"}


@pytest.mark.parametrize(
    "neutral",
    [
        {"frequency_penalty": 0, "presence_penalty": 0.0, "logit_bias": {}, "store": False},
        {"logprobs": False, "n": 1, "modalities": ["text"], "verbosity": "medium", "seed": None},
        {"stream_options": {"include_usage": True}, "response_format": {"type": "text"}},
        {"parallel_tool_calls": True, "temperature": 1, "top_p": 1.0},
    ],
)
def test_what_means_nothing_is_no_loss(neutral: Json) -> None:
    assert sent(request(**neutral)) == sent(request())


@pytest.mark.parametrize(
    "asked",
    [
        {"n": 2},
        {"logprobs": True},
        {"top_logprobs": 3},
        {"modalities": ["text", "audio"]},
        {"audio": {"voice": "x"}},
        {"web_search_options": {}},
    ],
)
def test_what_would_change_the_meaning_is_refused(asked: Json) -> None:
    with pytest.raises(BadRequest) as caught:
        sent(request(**asked))
    assert caught.value.param in asked
    assert caught.value.code == "unsupported_parameter"


def test_claudes_own_fields_pass_and_foreign_ones_are_named() -> None:
    own = {"cache_control": {"type": "ephemeral"}, "inference_geo": "eu", "speed": "fast"}
    body, notes = sent(request(extra={**own, "enable_thinking": True, "num_ctx": 5}))
    assert own.items() <= body.items()
    assert notes == ["parameter_dropped"] * 2


FIELDS = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.just(value) for name, value in LOST.items()},
        "temperature": st.floats(0, 2),
        "top_p": st.floats(0, 1),
        "max_tokens": st.integers(1, 40_000),
        "stop": st.lists(st.sampled_from(["a", " "]), max_size=4),
        "user": st.sampled_from(["x", "a1b2c3d4e5f6a7b8"]),
        "reasoning_effort": st.sampled_from(
            ["none", "minimal", "low", "medium", "high", "xhigh", "max"]
        ),
        "parallel_tool_calls": st.booleans(),
        "tool_choice": st.sampled_from(["none", "auto", "required", named("get_weather")]),
        "response_format": st.sampled_from([{"type": "text"}, {"type": "json_object"}]),
    },
)
MODELS = [MANUAL, ADAPTIVE, ALWAYS, UNASKED, BETWEEN, PLAIN, KIMI, "claude-opus-4-1"]


@given(FIELDS, st.sampled_from(MODELS), st.booleans(), st.booleans())
def test_claude_accepts_every_combination(
    fields: Json, model: str, tools: bool, round_open: bool
) -> None:
    """The rules Claude checks across fields, whatever a client combines."""
    choice = fields.pop("tool_choice", None) if tools else fields.pop("tool_choice", None) and None
    history = [HELLO]
    if round_open:
        history += [assistant(None, ("a", "get_weather", "{}")), result("a", "5")]
    asked = request(*history, model=model, choice=choice, tools=[WEATHER] * tools, **fields)
    body, _ = sent(asked)
    thinking, choice = body.get("thinking") or {}, body.get("tool_choice")
    kind = thinking.get("type")
    if kind == "enabled":
        assert 1024 <= thinking["budget_tokens"] < body["max_tokens"]
        assert (choice or {}).get("type") not in ("any", "tool")
        assert not round_open
    if kind in ("enabled", "adaptive"):
        assert "temperature" not in body
    if model in (ALWAYS, BETWEEN):
        assert kind != "disabled"
        assert (choice or {}).get("type") not in ("any", "tool")
    if model == PLAIN:
        assert kind is None
    assert choice is None or body["tools"]
    assert not (body.keys() >= {"temperature", "top_p"})
    assert body.get("temperature", 0) <= 1


# Thinking ---------------------------------------------------------------------------------------

SHOWN = {"display": "summarized"}
OFF: Json = {"type": "disabled"}
ON: Json = {"type": "adaptive", **SHOWN}


def budget(tokens: int) -> Json:
    return {"type": "enabled", "budget_tokens": tokens, **SHOWN}


@pytest.mark.parametrize(
    ("model", "effort", "thinking", "level", "notes"),
    [
        (MANUAL, None, None, None, []),
        (MANUAL, "none", None, None, []),
        (MANUAL, "minimal", budget(1024), None, []),
        (MANUAL, "low", budget(2048), None, []),
        (MANUAL, "medium", budget(4096), None, []),
        (MANUAL, "high", budget(8192), None, []),
        (MANUAL, "xhigh", budget(16384), None, []),
        (MANUAL, "max", budget(32000), None, []),
        (ADAPTIVE, None, None, None, []),
        (ADAPTIVE, "none", OFF, None, []),
        (ADAPTIVE, "minimal", ON, "low", []),
        (ADAPTIVE, "medium", ON, "medium", []),
        (ADAPTIVE, "xhigh", ON, "max", ["effort_adjusted"]),
        (ADAPTIVE, "max", ON, "max", []),
        (UNASKED, None, None, None, []),
        (UNASKED, "none", OFF, None, []),
        (UNASKED, "xhigh", ON, "xhigh", []),
        (ALWAYS, None, None, None, []),
        (ALWAYS, "none", ON, "low", ["thinking_not_disabled"]),
        (ALWAYS, "high", ON, "high", []),
        (BETWEEN, "none", {"type": "between_tools"}, None, ["thinking_not_disabled"]),
        (BETWEEN, "low", ON, "low", []),
        (PLAIN, "none", None, None, []),
        (PLAIN, "high", None, None, ["parameter_dropped"]),
        (KIMI, "low", {"type": "enabled", "budget_tokens": 2048}, None, []),
    ],
)
def test_effort(model: str, effort: Any, thinking: Any, level: Any, notes: list[str]) -> None:
    body, found = sent(request(model=model, reasoning_effort=effort))
    assert body.get("thinking") == thinking
    assert body.get("output_config", {}).get("effort") == level
    assert found == notes


@pytest.mark.parametrize(
    ("model", "asked", "thinking", "notes"),
    [
        (MANUAL, {"type": "enabled", "budget_tokens": 3000}, budget(3000), []),
        (MANUAL, {"type": "enabled"}, budget(4096), []),
        (MANUAL, {"type": "enabled", "budget_tokens": 500}, None, ["thinking_dropped"]),
        (MANUAL, OFF, None, []),
        (MANUAL, {"type": "adaptive"}, budget(4096), ["thinking_adapted"]),
        (ADAPTIVE, {"type": "enabled", "budget_tokens": 3000}, budget(3000), []),
        (ADAPTIVE, {"type": "adaptive", "display": "omitted"},
         {"type": "adaptive", "display": "omitted"}, []),
        (ADAPTIVE, OFF, OFF, []),
        (UNASKED, {"type": "enabled", "budget_tokens": 3000}, ON, ["thinking_adapted"]),
        (ALWAYS, OFF, ON, ["thinking_adapted", "thinking_not_disabled"]),
        (ALWAYS, {"type": "between_tools"}, ON, ["thinking_adapted"]),
        (BETWEEN, {"type": "between_tools"}, {"type": "between_tools"}, []),
        (PLAIN, OFF, None, []),
        (PLAIN, {"type": "enabled"}, None, ["thinking_adapted", "parameter_dropped"]),
        (MANUAL, {"type": "sideways"}, budget(4096), ["thinking_adapted"]),
        (MANUAL, True, None, ["parameter_dropped"]),
    ],
)  # fmt: skip
def test_claudes_own_thinking_field(
    model: str, asked: Any, thinking: Any, notes: list[str]
) -> None:
    body, found = sent(request(model=model, extra={"thinking": asked}))
    assert (body.get("thinking"), found) == (thinking, notes)


@pytest.mark.parametrize("tokens", ["3000", 3000.5, None, [3000], True])
def test_budget_is_a_whole_number(tokens: Any) -> None:
    asked = {"type": "enabled", "budget_tokens": tokens}
    with pytest.raises(BadRequest) as caught:
        sent(request(model=MANUAL, extra={"thinking": asked}))
    assert caught.value.param == "thinking.budget_tokens"


def test_budget_becomes_the_effort_it_is_worth() -> None:
    asked = {"type": "enabled", "budget_tokens": 10_000}
    body, _ = sent(request(model=UNASKED, extra={"thinking": asked}))
    assert body["output_config"] == {"effort": "xhigh"}


def test_own_field_outranks_the_effort_by_name() -> None:
    body, notes = sent(request(reasoning_effort="high", extra={"thinking": OFF}))
    assert ("thinking" in body, notes) == (False, ["parameter_dropped"])


def test_adaptive_thinking_and_effort_go_together() -> None:
    asked = request(model=UNASKED, reasoning_effort="low", extra={"thinking": {"type": "adaptive"}})
    body, notes = sent(asked)
    assert (body["thinking"], body["output_config"]) == (ON, {"effort": "low"})
    assert notes == []


@pytest.mark.parametrize(
    ("limit", "effort", "thinking", "notes"),
    [
        (5, "high", None, ["thinking_dropped"]),
        (1024, "high", None, ["thinking_dropped"]),
        (1025, "high", budget(1024), ["thinking_budget_lowered"]),
        (5000, "high", budget(4999), ["thinking_budget_lowered"]),
        (8193, "high", budget(8192), []),
    ],
)
def test_budget_stays_below_max_tokens(
    limit: int, effort: str, thinking: Any, notes: list[str]
) -> None:
    body, found = sent(request(max_tokens=limit, reasoning_effort=effort))
    assert (body["max_tokens"], body.get("thinking"), found) == (limit, thinking, notes)


ROUND = (user("x"), assistant(None, ("a", "get_weather", "{}")), result("a", "5"))
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "s"}


@pytest.mark.parametrize(
    ("asked", "note"),
    [
        ({"choice": "required"}, "thinking_disabled_tool_choice"),
        ({"choice": named("get_weather")}, "thinking_disabled_tool_choice"),
        ({"messages": ROUND}, "thinking_disabled_history"),
        ({"messages": (user("x"), assistant("{"))}, "thinking_disabled_prefill"),
    ],
)
def test_budget_gives_way_to_what_it_cannot_stand_beside(asked: Json, note: str) -> None:
    messages = asked.pop("messages", (HELLO,))
    body, notes = sent(request(*messages, tools=[WEATHER], reasoning_effort="low", **asked))
    assert ("thinking" in body, notes) == (False, [note])


@pytest.mark.parametrize(
    "messages",
    [
        (*ROUND, user("and now?")),
        (*ROUND, assistant("5 °C"), user("and now?")),
        (ROUND[0], {**ROUND[1], "thinking_blocks": [SIGNED]}, ROUND[2]),
    ],
)
def test_rounds_that_are_over_or_bring_their_thought_do_not_stop_thinking(
    messages: tuple[Json, ...],
) -> None:
    # A user's words beside the results still belong to the round.
    open_round = messages[-1] == user("and now?") and len(messages) == 4
    body, notes = sent(request(*messages, tools=[WEATHER], reasoning_effort="low"))
    assert ("thinking" in body) is not open_round
    assert bool(notes) is open_round


@pytest.mark.parametrize("model", [ADAPTIVE, ALWAYS])
def test_adaptive_models_go_on_without_the_lost_thought(model: str) -> None:
    body, notes = sent(request(*ROUND, model=model, tools=[WEATHER], reasoning_effort="low"))
    assert body["thinking"] == ON
    assert notes == ["thinking_missing_history"]


def test_adaptive_models_think_beside_a_forced_call() -> None:
    asked = request(model=ADAPTIVE, tools=[WEATHER], choice="required", reasoning_effort="low")
    body, notes = sent(asked)
    assert (body["thinking"], body["tool_choice"], notes) == (ON, {"type": "any"}, [])


@pytest.mark.parametrize(
    ("model", "asked", "streamed"),
    [
        (MANUAL, {}, False),
        (MANUAL, {"max_tokens": LONGEST_PLAIN}, False),
        (MANUAL, {"max_tokens": LONGEST_PLAIN + 1}, True),
        (MANUAL, {"reasoning_effort": "low"}, True),
        (ADAPTIVE, {}, False),
        (ADAPTIVE, {"reasoning_effort": "none"}, False),
        (UNASKED, {"max_tokens": 10}, True),
        (UNASKED, {"max_tokens": 10, "reasoning_effort": "none"}, False),
        (ALWAYS, {"max_tokens": 10}, True),
    ],
)
def test_long_and_thoughtful_answers_are_streamed(model: str, asked: Json, streamed: bool) -> None:
    body, _ = sent(request(model=model, **asked))
    assert must_stream(body, capability(model, {})) is streamed
    assert (body.get("stream") is True) is streamed


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
