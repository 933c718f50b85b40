"""Claude's errors and misshapen answers: an error with the right status, and no empty success."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from adapters.claude.decode import State, close, decode, decode_answer
from adapters.errors import RateLimited, Refused, Truncated, Unavailable, UpstreamError
from adapters.protocol import Finish, Json, TextDelta, Usage
from tests.support.upstreams.claude_wire import (
    begin,
    end,
    hear,
    message,
    sse,
    text,
)

# Failures ---------------------------------------------------------------------------------------


ERRORS: Mapping[str, tuple[type[UpstreamError], int, str, str]] = {
    "invalid_request_error": (Refused, 400, "upstream_bad_request", "never"),
    "authentication_error": (Refused, 502, "upstream_auth", "elsewhere"),
    "billing_error": (Refused, 503, "upstream_billing", "elsewhere"),
    "permission_error": (Refused, 502, "upstream_auth", "elsewhere"),
    "not_found_error": (Refused, 404, "model_not_found", "elsewhere"),
    "request_too_large": (Refused, 413, "request_too_large", "never"),
    "rate_limit_error": (RateLimited, 429, "rate_limit_exceeded", "same"),
    "timeout_error": (Unavailable, 504, "upstream_timeout", "same"),
    "overloaded_error": (Unavailable, 503, "overloaded", "same"),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_error_in_a_stream_stands_for_the_status_of_its_type(kind: str) -> None:
    failed = {"type": "error", "error": {"type": kind, "message": "so it is"}}
    error = hear(sse(begin(), *text(0, "a"), failed)).error
    expected, status, code, again = ERRORS[kind]
    assert type(error) is expected
    assert (error.status, error.code, error.again) == (status, code, again)
    assert "so it is" in error.message


@pytest.mark.parametrize(
    "failed",
    [
        {"type": "error", "error": {"type": "api_error", "message": "broken"}},
        {"type": "error", "error": "broken"},
        {"type": "error"},
        {"type": "error", "error": {"type": ["odd"], "message": {"odd": 1}}},
        {"type": "error", "error": {"type": "invented_error", "message": "broken"}},
        {"type": "invented_later", "error": {"message": "broken"}},
    ],
)
def test_any_error_fails_the_answer_before_and_after_it_opened(failed: Json) -> None:
    for before in ([], [begin(), *text(0, "a")]):
        assert isinstance(hear(sse(*before, failed, *end())).error, UpstreamError)
    plain = hear(orjson.dumps(failed), streamed=False)
    assert isinstance(plain.error, UpstreamError)
    assert plain.batches == []


MISSHAPEN: Mapping[str, Any] = {
    "a list": [],
    "a number": 5,
    "no content": {"type": "message", "stop_reason": "end_turn"},
    "content of null": {"type": "message", "content": None, "stop_reason": "end_turn"},
    "content of text": {"type": "message", "content": "hello", "stop_reason": "end_turn"},
    "a call without a name": {"type": "message", "content": [{"type": "tool_use", "id": "a"}]},
    "an answer of OpenAI's": {"object": "chat.completion", "choices": []},
}


@pytest.mark.parametrize("body", MISSHAPEN.values(), ids=MISSHAPEN)
def test_what_is_no_claude_message_is_an_error_and_no_empty_success(body: Any) -> None:
    answer = hear(orjson.dumps(body), streamed=False)
    assert isinstance(answer.error, UpstreamError)
    assert answer.batches == []


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_delta", "index": 0},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use"}},
        {"type": "message_start"},
        {"type": "message_delta"},
    ],
)
def test_misshapen_event_fails_the_answer(event: Json) -> None:
    assert isinstance(hear(sse(begin(), event, *end())).error, UpstreamError)


def test_end_of_nothing_is_an_error() -> None:
    strange = {"type": "message", "model": "claude-x", "stop_reason": "end_turn"}
    for stream in (sse(*end()), sse(strange, *end()), sse({"type": "message_stop"})):
        answer = hear(stream)
        assert isinstance(answer.error, UpstreamError)
        assert answer.batches == []
    assert hear(sse(*text(0, "a"), *end())).text == "a"


def test_half_a_json_text_is_a_cut() -> None:
    assert isinstance(hear(sse(begin()), b'data: {"type":"content_block_de').error, Truncated)


# The functions themselves -----------------------------------------------------------------------


def test_frames_can_be_read_one_by_one() -> None:
    state = State()
    assert list(decode(orjson.dumps(begin()), state)) == []
    deltas = [orjson.dumps(event) for event in text(0, "a")]
    assert [list(decode(frame, state)) for frame in deltas] == [[], [TextDelta("a")], []]
    with pytest.raises(Truncated, match="upstream"):
        list(close(state))
    list(decode(orjson.dumps(end()[0]), state))
    assert state.ending
    assert list(close(state)) == [Finish("stop", Usage(10, 5), "end_turn")]


def test_answer_is_read_whole() -> None:
    body = orjson.loads(message({"type": "text", "text": "a"}))
    assert list(decode_answer(body, State())) == [
        TextDelta("a"),
        Finish("stop", Usage(10, 5), "end_turn"),
    ]
