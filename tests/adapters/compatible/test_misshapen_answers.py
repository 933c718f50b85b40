"""Errors that come as answers, and answers of any shape, streamed and plain."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import RateLimited, Refused, Unavailable, UpstreamError
from adapters.protocol import Json
from tests.adapters.compatible.answers import (
    DONE,
    USAGE,
    answer_to,
    chunk,
    frame,
    good,
    heard,
    piece,
    usage,
    whole,
)

# Errors that come as answers ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "kind", "status", "code"),
    [
        ({"error": {"message": "no", "code": 429}}, RateLimited, 429, "rate_limit_exceeded"),
        ({"error": {"message": "no", "code": "429"}}, RateLimited, 429, "rate_limit_exceeded"),
        ({"error": {"message": "no", "type": "server_error"}}, Unavailable, 500, "upstream_error"),
        ({"error": {"message": "no", "type": "overloaded_error"}}, Unavailable, 503, "overloaded"),
        ({"error": {"message": "no", "status": 401}}, Refused, 502, "upstream_auth"),
        (
            {"error": {"message": "prompt is too long", "type": "invalid_request_error"}},
            Refused,
            400,
            "context_length_exceeded",
        ),
        ({"error": "no"}, Unavailable, 500, "upstream_error"),
        ({"object": "error", "message": "no", "code": 400}, Refused, 400, "upstream_bad_request"),
    ],
)
def test_an_error_object_is_an_error_whatever_its_status(
    said: Json, kind: type[UpstreamError], status: int, code: str
) -> None:
    first = heard(frame(said))
    plain = answer_to([json.dumps(said).encode()], streamed=False)
    late = heard(chunk({"content": "half"}), frame(said), chunk({}, "stop"), DONE)
    assert (late.text, late.reason) == ("half", "")
    for answer in (first, plain, late):
        assert type(answer.error) is kind
        assert (answer.error.status, answer.error.code) == (status, code)


@pytest.mark.parametrize(
    "body", [{}, {"choices": []}, {"choices": [{}]}, {"choices": [{"message": None}]}, [], None, 1]
)
def test_a_plain_answer_without_a_message_is_an_error_not_an_empty_success(body: Any) -> None:
    answer = answer_to([json.dumps(body).encode()], streamed=False)
    assert isinstance(answer.error, UpstreamError)
    assert answer.batches == []


MEMBERS = (
    *("choices", "delta", "message", "content", "tool_calls", "function", "index", "id"),
    *("name", "arguments", "finish_reason", "usage", "error", "logprobs", "refusal"),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(MEMBERS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(VALUES)
def test_no_shape_of_an_answer_is_more_than_an_upstream_error(value: Any) -> None:
    for answer in (heard(frame(value)), answer_to([json.dumps(value).encode()], streamed=False)):
        assert answer.reason or isinstance(answer.error, UpstreamError)


# Streamed and plain are one ----------------------------------------------------------------------


TEXT = st.text(min_size=1, max_size=8)
CALLS = st.lists(
    st.tuples(st.sampled_from(["f", "g"]), st.dictionaries(TEXT, st.integers() | TEXT, max_size=2)),
    max_size=3,
)


@given(st.lists(TEXT, max_size=3), st.lists(TEXT, max_size=3), CALLS, st.booleans())
def test_the_folded_stream_is_the_plain_answer(
    thoughts: list[str], texts: list[str], calls: list[tuple[str, Json]], fused: bool
) -> None:
    said = [(f"id{k}", name, json.dumps(values)) for k, (name, values) in enumerate(calls)]
    message: Json = {"role": "assistant", "content": "".join(texts) or None}
    message["reasoning_content"] = "".join(thoughts)
    message["tool_calls"] = [
        {"id": identity, "function": {"name": name, "arguments": arguments}}
        for identity, name, arguments in said
    ]
    frames = [chunk({"content": None, "reasoning_content": thought}) for thought in thoughts]
    frames += [chunk({"content": text}) for text in texts]
    for index, (identity, name, arguments) in enumerate(said):
        frames.append(piece("", id=identity, name=name, index=index))
        frames += [piece(letter, index=index) for letter in arguments]
    reason = "tool_calls" if calls else "stop"
    ends = [chunk({}, reason, usage=USAGE)] if fused else [chunk({}, reason), usage()]
    streamed = good(heard(b"".join((*frames, *ends, DONE))))
    plain = good(whole(message, reason, usage=USAGE))
    streamed.opened = plain.opened = None
    assert streamed == plain
