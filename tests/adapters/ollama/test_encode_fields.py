"""Fields, thinking and laws of a request in Ollama's words: nothing vanishes."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.errors import BadRequest
from adapters.ollama.abilities import Abilities
from adapters.ollama.encode import Options
from adapters.protocol import Carried, Json
from tests.adapters.ollama.asking import ABLE, USER, body, call, codes, encoded, tool

# Scalars ---------------------------------------------------------------------------------------


def test_a_plain_request_says_so_because_streaming_is_the_default() -> None:
    assert body(streamed=False)["stream"] is False
    assert body(streamed=True)["stream"] is True


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"max_tokens": 5}, {"num_predict": 5}),
        ({"max_tokens": 7, "max_completion_tokens": 7}, {"num_predict": 7}),
        ({"stop": "X"}, {"stop": ["X"]}),
        ({"stop": ["X", "Y"]}, {"stop": ["X", "Y"]}),
        ({"frequency_penalty": 0}, {"frequency_penalty": 0}),
        ({"presence_penalty": 1.5}, {"presence_penalty": 1.5}),
        ({"temperature": 0, "top_p": 0.1, "seed": 3}, {"temperature": 0, "top_p": 0.1, "seed": 3}),
        ({"extra": {"top_k": 4, "min_p": 0.1}}, {"top_k": 4, "min_p": 0.1}),
        ({"extra": {"options": {"stop": "X", "mirostat": 1}}}, {"stop": ["X"], "mirostat": 1}),
        ({"extra": {"num_ctx": 999}}, {"num_ctx": 999}),
        ({"temperature": None}, {}),
    ],
)
def test_sampling_and_limits_become_options(fields: Json, options: Json) -> None:
    found, receipt = encoded(**fields)
    assert found["options"] == options
    assert receipt == ()


@pytest.mark.parametrize(
    ("fields", "options", "lost"),
    [
        ({"max_tokens": 5, "max_completion_tokens": 7}, {"num_predict": 7}, ["max_tokens"]),
        ({"max_tokens": 5, "extra": {"num_predict": 9}}, {"num_predict": 9}, ["max_tokens"]),
        (
            {"temperature": 1, "extra": {"options": {"temperature": 0.5}}},
            {"temperature": 0.5},
            ["temperature"],
        ),
    ],
)
def test_what_is_said_twice_counts_once_and_the_other_is_named(
    fields: Json, options: Json, lost: list[str]
) -> None:
    found, receipt = encoded(**fields)
    assert found["options"] == options
    assert [note.field for note in receipt] == lost


def test_the_config_gives_what_the_client_does_not_say() -> None:
    options = Options(max_tokens=9, num_ctx=4096, keep_alive="1h", min_num_ctx=5)
    found = body(able=ABLE, options=options)
    assert (found["options"], found["keep_alive"]) == ({"num_predict": 9, "num_ctx": 4096}, "1h")
    found = body(able=ABLE, options=options, max_tokens=3, extra={"keep_alive": 0, "num_ctx": 7})
    assert (found["options"], found["keep_alive"]) == ({"num_predict": 3, "num_ctx": 7}, 0)


def test_log_probabilities_are_asked_for_natively() -> None:
    found = body(logprobs=True, top_logprobs=3)
    assert (found["logprobs"], found["top_logprobs"]) == (True, 3)


@pytest.mark.parametrize(
    "field",
    ["user", "metadata", "store", "logit_bias", "service_tier", "prediction", "prompt_cache_key"],
)
def test_what_the_server_has_nothing_like_is_named(field: str) -> None:
    fields: Json = {field: {"a": 1}}
    found, receipt = encoded(**fields)
    assert [(note.code, note.field) for note in receipt] == [("parameter_dropped", field)]
    assert field not in found
    assert field not in found["options"]


@pytest.mark.parametrize("field", ["api_key", "base_url", "template", "raw"])
def test_only_known_fields_of_the_vendor_pass(field: str) -> None:
    found, receipt = encoded(extra={field: "x"})
    assert [note.field for note in receipt] == [field]
    assert b'"x"' not in orjson.dumps(found)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"extra": {"options": 5}}, "options"),
        ({"extra": {"think": {"a": 1}}}, "think"),
    ],
)
def test_what_would_change_the_meaning_is_refused(fields: Json, param: str) -> None:
    with pytest.raises(BadRequest) as caught:
        encoded(**fields)
    assert caught.value.param == param


@pytest.mark.parametrize("fields", [{"n": 1}, {"modalities": ["text"]}, {"stream_options": {}}])
def test_what_is_so_anyway_is_no_loss(fields: Json) -> None:
    assert encoded(**fields)[1] == ()


# Thinking --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effort", "think"),
    [
        (None, None),
        ("none", False),
        ("minimal", "low"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("xhigh", "max"),
        ("max", "max"),
    ],
)
def test_effort_of_a_thinking_model(effort: str | None, think: Any) -> None:
    found, receipt = encoded(reasoning_effort=effort)
    assert found.get("think") == think
    assert receipt == ()


@pytest.mark.parametrize(
    ("effort", "think", "changed"),
    [
        (None, "low", False),
        ("none", "low", True),
        ("minimal", "low", False),
        ("medium", "medium", False),
        ("high", "high", False),
        ("xhigh", "high", True),
        ("max", "high", True),
    ],
)
@pytest.mark.parametrize("named", [True, False], ids=["by name", "by family"])
def test_gpt_oss_has_three_levels(
    effort: str | None, think: str, changed: bool, named: bool
) -> None:
    able = Abilities(thinking=True, family="" if named else "gptoss")
    model = "gpt-oss:20b" if named else "renamed"
    found, receipt = encoded(model=model, able=able, reasoning_effort=effort)
    assert found["think"] == think
    assert codes(receipt) == ["reasoning_effort_changed"] * changed


@pytest.mark.parametrize(
    ("extra", "effort", "think", "lost"),
    [
        ({"think": "high"}, "low", "high", ["reasoning_effort"]),
        ({"think": False}, "low", False, ["reasoning_effort"]),
        ({"think": False}, "none", False, []),
        ({"think": "max"}, "xhigh", "max", []),
        ({"thinking": {"type": "disabled"}}, "low", False, ["reasoning_effort"]),
        ({"thinking": {"type": "enabled"}}, None, True, []),
        ({"thinking": True}, None, True, []),
        ({"thinking": False}, "low", False, ["reasoning_effort"]),
        ({"thinking": "enabled"}, "low", "low", ["thinking"]),
        ({"think": "low", "thinking": True}, None, "low", ["thinking"]),
        ({"think": True, "thinking": True}, "none", True, ["reasoning_effort"]),
    ],
)
def test_a_vendors_own_word_outranks_effort(
    extra: Json, effort: str | None, think: Any, lost: list[str]
) -> None:
    found, receipt = encoded(extra=extra, reasoning_effort=effort)
    assert found["think"] == think
    assert [(note.code, note.field) for note in receipt] == [
        ("parameter_dropped", field) for field in lost
    ]


def test_a_budget_of_thoughts_is_named() -> None:
    found, receipt = encoded(extra={"thinking": {"type": "enabled", "budget_tokens": 5}})
    assert found["think"] is True
    assert codes(receipt) == ["thinking_budget_dropped"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"reasoning_effort": "high"}, ["reasoning_effort"]),
        ({"extra": {"think": True}}, ["think"]),
        ({"extra": {"thinking": {"type": "enabled"}}}, ["thinking"]),
        ({"extra": {"thinking": True}}, ["thinking"]),
        ({"reasoning_effort": "none"}, []),
        ({"extra": {"think": False}}, []),
    ],
)
def test_a_model_that_cannot_think_is_not_asked_to(fields: Json, told: list[str]) -> None:
    found, receipt = encoded(able=Abilities(thinking=False), **fields)
    assert "think" not in found
    assert [(note.code, note.field) for note in receipt] == [
        ("thinking_dropped", field) for field in told
    ]


def test_a_model_nobody_knows_is_asked_what_the_client_asks() -> None:
    assert body(able=Abilities(), reasoning_effort="high")["think"] == "high"


# Laws ------------------------------------------------------------------------------------------


WORDS = st.text(max_size=8)
TURNS = st.lists(
    st.one_of(
        st.builds(lambda text: [{"role": "user", "content": text}], WORDS),
        st.builds(
            lambda text, name, arguments: [
                {"role": "assistant", "content": text, "tool_calls": [call("c", arguments, name)]},
                {"role": "tool", "tool_call_id": "c", "content": text},
            ],
            WORDS,
            st.sampled_from(["get_weather", "查询"]),
            st.sampled_from(["{}", "", '{"a": 1e5}', "{bro", "[1]"]),
        ),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(TURNS)
def test_a_longer_history_begins_with_the_same_bytes(turns: list[list[Json]]) -> None:
    messages = [USER, *(message for turn in turns for message in turn)]
    before = copy.deepcopy(messages)
    whole = body(*messages, tools=[tool()])
    assert messages == before
    shorter = body(*messages[: -len(turns[-1])], tools=[tool()])
    assert orjson.dumps(whole["tools"]) == orjson.dumps(shorter["tools"])
    assert orjson.dumps(whole["messages"]).startswith(orjson.dumps(shorter["messages"])[:-1])


FIELDS: Json = {
    "temperature": 0.5,
    "max_tokens": 5,
    "stop": ["x"],
    "user": "u",
    "store": True,
    "reasoning_effort": "low",
    "parallel_tool_calls": False,
    "logit_bias": {"1": 1},
    "n": 1,
    "logprobs": True,
    "metadata": {"a": "b"},
    "unheard_of": 1,
}
KEPT_BY_US = {"parallel_tool_calls", "n"}
RENAMED = {"max_tokens": "num_predict", "reasoning_effort": "think"}


@settings(max_examples=60, deadline=None)
@given(st.sets(st.sampled_from(sorted(FIELDS))))
def test_every_field_is_carried_or_named(chosen: set[str]) -> None:
    found, receipt = encoded(**{name: FIELDS[name] for name in chosen})
    carried = found.keys() | found["options"].keys()
    told = {note.field for note in receipt}
    for name in chosen - KEPT_BY_US:
        assert (RENAMED.get(name, name) in carried) != (name in told)


# Of clients that speak Ollama's API ------------------------------------------------------------


def test_what_an_ollamas_client_says_goes_up_as_it_was_said() -> None:
    said = {"options": {"top_k": 3, "num_ctx": 9}, "keep_alive": "5m", "truncate": True}
    sent = body(native=Carried("ollama", said), temperature=0.5)
    assert sent["options"] == {"temperature": 0.5, "top_k": 3, "num_ctx": 9}
    assert (sent["keep_alive"], sent["truncate"]) == ("5m", True)


def test_what_the_config_says_outranks_it() -> None:
    said = {"options": {"top_k": 3}, "keep_alive": "5m"}
    sent = body(native=Carried("ollama", said), extra={"top_k": 1, "keep_alive": 0})
    assert (sent["options"], sent["keep_alive"]) == ({"top_k": 1}, 0)
