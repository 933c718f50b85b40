"""Every field of a request to Claude: carried, lost by name, or refused."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.protocol import Json
from tests.adapters.claude.conversations import KIMI, named
from tests.support.dialogue import assistant, result
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
    sent_with_notes,
)

NEW_API = claude("2026-10-21")


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


@pytest.mark.parametrize("name", ["user", "safety_identifier"])
def test_the_id_that_was_hashed_is_named_as_it_was_sent(name: str) -> None:
    asked: Json = {name: "li@example.com"}
    _, notes = sent_with_notes(request(**asked))
    assert [(note.code, note.field) for note in notes] == [("user_hashed", name)]


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
