"""Errors as Anthropic tells them."""

from __future__ import annotations

import orjson
import pytest

from adapters.errors import (
    BadRequest,
    Busy,
    GatewayError,
    TooLarge,
    Truncated,
    Unauthorized,
    UnknownModel,
    from_words,
)
from middleware.doors.messages import MESSAGES_DOOR


@pytest.mark.parametrize(
    ("error", "status", "kind", "retried"),
    [
        (BadRequest("x"), 400, "invalid_request_error", "false"),
        (from_words(422, "x", "up"), 400, "invalid_request_error", "false"),
        (Unauthorized("x"), 401, "authentication_error", "false"),
        (from_words(401, "x", "up"), 502, "api_error", None),
        (from_words(402, "x", "up"), 402, "billing_error", "false"),
        (UnknownModel("x", param="model"), 404, "not_found_error", "false"),
        (TooLarge("x"), 413, "request_too_large", "false"),
        (BadRequest("x", status=405), 405, "invalid_request_error", "false"),
        (BadRequest("x", status=403), 403, "permission_error", "false"),
        (from_words(429, "x", "up"), 429, "rate_limit_error", ""),
        (from_words(429, "exceeded your current quota", "up"), 429, "rate_limit_error", None),
        (from_words(500, "x", "up"), 500, "api_error", None),
        (from_words(503, "x", "up"), 529, "overloaded_error", ""),
        (from_words(529, "x", "up"), 529, "overloaded_error", ""),
        (Busy("x"), 529, "overloaded_error", ""),
        (from_words(504, "x", "up"), 504, "timeout_error", None),
        (Truncated("x"), 502, "api_error", None),
    ],
)
def test_statuses_types_and_whether_to_ask_again(
    error: GatewayError, status: int, kind: str, retried: str | None
) -> None:
    assert MESSAGES_DOOR.error_status(error) == status
    told = orjson.loads(MESSAGES_DOOR.error_body(error, "req_1"))
    assert (told["type"], told["error"]["type"], told["request_id"]) == ("error", kind, "req_1")
    headers = MESSAGES_DOOR.headers("req_1", error)
    assert headers["request-id"] == "req_1"
    assert headers.get("x-should-retry") == retried
    assert ("retry-after" in headers) == (retried == "")


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        ("maximum context length is 65536 tokens, you asked for 70001",
         "prompt is too long: 70001 tokens > 65536 maximum. "),
        ("the context length is exceeded", "prompt is too long. "),
        ("prompt is too long: 9 tokens > 8 maximum", "Upstream 'up' answered 400: prompt is"),
    ],
)  # fmt: skip
def test_what_is_too_long_is_told_as_claude_code_looks_for_it(words: str, begins: str) -> None:
    told = orjson.loads(MESSAGES_DOOR.error_body(from_words(400, words, "up")))
    assert told["error"]["message"].startswith(begins)


def test_an_unknown_model_is_named_as_anthropic_does() -> None:
    error = UnknownModel("The model 'x' does not exist here.", param="model")
    assert orjson.loads(MESSAGES_DOOR.error_body(error))["error"]["message"].startswith("model: ")
