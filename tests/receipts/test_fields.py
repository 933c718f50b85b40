"""Every field of a request is carried, or named, or refused.

Whether something was carried is seen from outside: leave it out, and the upstream's body changes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.protocol import Adapter, Json
from tests.receipts.sending import SCHEMA, _is_part, every_upstream, send, tool
from tests.support.recordings import Upstream


def vanished(adapter: Adapter, body: Json, fields: Sequence[str]) -> list[str]:
    """The fields of which nothing is seen again; what is refused is taken out, one by one."""
    body = dict(body)
    while (sent := send(adapter, body)).refused is not None:
        assert sent.refused.status == 400
        (blamed,) = [name for name in body if _is_part(sent.refused.param or "", name)]
        if blamed in ("model", "messages", "tools"):
            return []
        del body[blamed]
    return [
        name
        for name in fields
        if name in body
        and not sent.names(name)
        and send(adapter, {key: body[key] for key in body if key != name}) == sent
    ]


# Every field of a request ----------------------------------------------------------------------


FLOATS = st.floats(0.01, 0.99).map(lambda value: round(value, 2))

# The values ask for something: what only repeats a default need not be seen again.
PARAMS: Mapping[str, st.SearchStrategy[Any]] = {
    "audio": st.just({"voice": "alloy", "format": "wav"}),
    "frequency_penalty": FLOATS,
    "logit_bias": st.just({"50256": -100}),
    "logprobs": st.just(True),
    "max_completion_tokens": st.integers(1, 9000),
    "max_tokens": st.integers(1, 9000),
    "metadata": st.just({"trace": "t"}),
    "modalities": st.sampled_from([["text", "audio"], ["audio"]]),
    "moderation": st.just({"model": "m"}),
    "parallel_tool_calls": st.just(False),
    "prediction": st.just({"type": "content", "content": "x"}),
    "presence_penalty": FLOATS,
    "prompt_cache_key": st.just("key"),
    "prompt_cache_options": st.just({"mode": "implicit", "ttl": "1h"}),
    "prompt_cache_retention": st.just("24h"),
    "reasoning_effort": st.sampled_from(["minimal", "low", "medium", "high", "xhigh", "max"]),
    "response_format": st.sampled_from(
        [
            {"type": "json_object"},
            {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
            {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}},
        ]
    ),
    "safety_identifier": st.just("someone"),
    "seed": st.integers(1, 99),
    "service_tier": st.sampled_from(["flex", "priority"]),
    "stop": st.sampled_from(["END", ["END"], ["a", "b", "c", "d"]]),
    "store": st.just(True),
    "temperature": FLOATS,
    "top_logprobs": st.integers(1, 5),
    "top_p": FLOATS,
    "user": st.sampled_from(["someone@example.com", "用户", "a1b2c3d4e5f6a7b8c9d0"]),
    "verbosity": st.sampled_from(["low", "high"]),
    "web_search_options": st.just({"search_context_size": "low"}),
    # What OpenAI does not have.
    "keep_alive": st.just("5m"),
    "min_p": FLOATS,
    "num_ctx": st.just(4096),
    "options": st.just({"mirostat": 1}),
    "think": st.booleans(),
    "thinking": st.sampled_from([{"type": "enabled", "budget_tokens": 2000}, False, "enabled"]),
    "top_k": st.integers(1, 50),
    "x_unheard_of": st.just({"a": [1]}),
}  # fmt: skip

# Kept by the gateway itself, on the answer's way back.
KEPT_BY_US = frozenset({"parallel_tool_calls"})

REQUESTS = st.fixed_dictionaries(
    {"messages": st.just([{"role": "user", "content": "Say JSON."}]), "stream": st.booleans()},
    optional={
        "tools": st.just([tool(), tool("查询天气")]),
        "tool_choice": st.sampled_from(
            ["none", "required", {"type": "function", "function": {"name": "get_weather"}}]
        ),
        **PARAMS,
    },
)


@every_upstream
@settings(max_examples=150)
@given(body=REQUESTS, thinks=st.booleans())
def test_every_field_is_carried_or_named_or_refused(
    upstream: Upstream, body: Json, thinks: bool
) -> None:
    model = upstream.reasoning.get("model", upstream.model) if thinks else upstream.model
    body = sensible(body)
    before = copy.deepcopy(body)
    adapter = upstream.connect(upstream.link())
    fields = [name for name in body if name in PARAMS or name in ("tools", "tool_choice")]
    assert vanished(adapter, {"model": model, **body}, fields) == []
    assert body == before


def sensible(body: Json) -> Json:
    """Leave out what has no meaning beside what else is asked."""
    choice = body.get("tool_choice", "auto")
    without = set(KEPT_BY_US)
    if body.get("max_tokens") == body.get("max_completion_tokens"):
        without.add("max_tokens")
    thinking = body.get("thinking")
    if body.get("think") == (isinstance(thinking, dict) or thinking):
        without.add("thinking")  # both say the same
    if "tools" not in body or choice == "none":
        without |= {"tool_choice", "tools"}
    elif choice != "auto":
        without.add("response_format")  # of a text that will not be
    return {name: body[name] for name in body if name not in without}


@every_upstream
@pytest.mark.parametrize("name", PARAMS)
def test_each_field_alone_is_carried_or_named_or_refused(upstream: Upstream, name: str) -> None:
    @settings(max_examples=6)
    @given(value=PARAMS[name], streamed=st.booleans())
    def check(value: Any, streamed: bool) -> None:
        body = {
            "model": upstream.model,
            "messages": [{"role": "user", "content": "Say JSON."}],
            "tools": [tool()],
            "stream": streamed,
            name: value,
        }
        assert vanished(upstream.connect(upstream.link()), body, [name]) == []

    if name not in KEPT_BY_US:
        check()
