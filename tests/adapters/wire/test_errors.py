"""What an upstream's failure is for the client: the right status, clean words, no secrets."""

from __future__ import annotations

import inspect
import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import errors
from adapters.errors import (
    BY_STATUS,
    KEY_SHAPE,
    GatewayError,
    from_status,
    from_words,
    scrub,
    words_of,
)
from tests.linear.measuring import Work, is_within, seconds


def body(message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "x"}}).encode()


@pytest.mark.parametrize(
    ("upstream", "status", "kind", "code", "again"),
    [
        (400, 400, "invalid_request_error", "upstream_bad_request", "never"),
        (401, 502, "api_error", "upstream_auth", "elsewhere"),
        (402, 503, "api_error", "upstream_billing", "elsewhere"),
        (403, 502, "api_error", "upstream_auth", "elsewhere"),
        (404, 404, "invalid_request_error", "model_not_found", "elsewhere"),
        (405, 400, "invalid_request_error", "upstream_bad_request", "never"),
        (408, 504, "api_error", "upstream_timeout", "same"),
        (409, 409, "invalid_request_error", "conflict", "never"),
        (413, 413, "invalid_request_error", "request_too_large", "never"),
        (418, 400, "invalid_request_error", "upstream_bad_request", "never"),
        (422, 400, "invalid_request_error", "upstream_bad_request", "never"),
        (429, 429, "rate_limit_error", "rate_limit_exceeded", "same"),
        (500, 500, "api_error", "upstream_error", "same"),
        (502, 502, "api_error", "upstream_error", "same"),
        (503, 503, "api_error", "overloaded", "same"),
        (504, 504, "api_error", "upstream_timeout", "same"),
        (520, 502, "api_error", "upstream_error", "same"),
        (529, 503, "api_error", "overloaded", "same"),
    ],
)
def test_status_of_an_upstream(
    upstream: int, status: int, kind: str, code: str, again: str
) -> None:
    error = from_status(upstream, {}, body("no"), "acme", ())
    assert (error.status, error.type, error.code, error.again) == (status, kind, code, again)
    assert error.message == f"Upstream 'acme' answered {upstream}: no"


def test_the_clients_own_401_is_never_the_upstreams() -> None:
    assert all(row.status != 401 for row in BY_STATUS.values())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", "context_length_exceeded"),
        ("This model's maximum context length is 131072 tokens.", "context_length_exceeded"),
        ("input exceeds the context window", "context_length_exceeded"),
        ("messages.1: `tool_use` ids were found without `tool_result`", "invalid_tool_history"),
        ("unexpected `tool_use_id` found in `tool_result`", "invalid_tool_history"),
        ("messages with role 'tool' must be a response", "invalid_tool_history"),
        ("The reasoning_content in the thinking mode must be passed back", "invalid_tool_history"),
        ("Expected `thinking` or `redacted_thinking`", "invalid_tool_history"),
        ("temperature: range: 0..1", "upstream_bad_request"),
    ],
)
def test_a_400_says_which_kind(words: str, code: str) -> None:
    assert from_status(400, {}, body(words), "acme", ()).code == code


def test_an_empty_quota_helps_nobody_here() -> None:
    error = from_words(429, "You exceeded your current quota (insufficient_quota)", "acme")
    assert (error.status, error.code, error.again) == (429, "insufficient_quota", "elsewhere")


@pytest.mark.parametrize(
    ("status", "headers", "wanted"),
    [
        (429, {"retry-after": "7"}, "7"),
        (429, {}, None),
        (503, {}, None),
        (529, {"retry-after": "30"}, "30"),
        (500, {}, None),
    ],
)
def test_how_long_to_wait(status: int, headers: dict[str, str], wanted: str | None) -> None:
    assert from_status(status, headers, b"", "acme", ()).retry_after == wanted


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_named_not_followed(status: int) -> None:
    error = from_status(status, {"location": "http://evil"}, b"", "acme", ())
    assert (error.status, error.code) == (502, "upstream_redirect")
    assert "evil" not in error.message


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b'{"error":{"message":"no"}}', "no"),
        (b'{"type":"error","error":{"type":"x","message":"no"}}', "no"),
        (b'{"error":"no"}', "no"),
        (b'{"message":"no"}', "no"),
        (b'{"detail":"no"}', "no"),
        (b'{"error":{"message":{"detail":"no"}}}', "no"),
        (b'{"detail":[{"msg":"no"}]}', '[{"msg":"no"}]'),
        (b'{"code":7,"msg":"no"}', '{"code":7,"msg":"no"}'),
        (b'{"error":{"type":"x","message":""}}', '{"type":"x","message":""}'),
        (b"<html>\n no </html>", "no"),
        (b"no \xff", "no �"),
        (b"", ""),
        (b"{}", ""),
        (b"null", ""),
    ],
)
def test_the_sentence_of_an_error_body(sent: bytes, words: str) -> None:
    assert words_of(sent) == words


def test_an_error_without_words_says_so() -> None:
    assert "it gave no reason" in from_status(500, {}, b"", "acme", ()).message


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop",
        "sk_live_abcdefghijklmnop",
        "Bearer abcdefghijklmnop",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIi",
        "our-very-own-key",
        "AIzaSyA-1234567890_abcdefghijklmnopqrs",
        "ya29.a0AfH6SMBabcdefghijkl",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "github_pat_11ABCDEFG0abcdefghij",
        "glpat-abcdefghij0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "hf_abcdefghijklmnopqrstuvwx",
        "gsk_abcdefghijklmnopqrstuvwx",
        "xoxb-123456789012-abcdefgh",
        "tvly-dev-abcdefghijklmnop",
        "Basic dXNlcjpwYXNz",
    ],
)
def test_secrets_are_never_repeated(secret: str) -> None:
    text = scrub(f"Incorrect API key provided: {secret} here.", ("", "our-very-own-key"))
    assert text == "Incorrect API key provided: [secret] here."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "no proxy http://user:pw@10.0.0.1:3128 here",
            "no proxy http://[secret]@10.0.0.1:3128 here",
        ),
        ("https://token@host/a?b=c", "https://[secret]@host/a?b=c"),
        ("http://host/v1?a=1&key=abcdef&b=2 failed", "http://host/v1?a=1[secret]&b=2 failed"),
        ("http://host/?x-api_key=abcdef", "http://host/[secret]"),
    ],
)
def test_secrets_of_an_address_are_never_repeated(text: str, shown: str) -> None:
    assert scrub(text) == shown


@pytest.mark.parametrize("unit", ["://", "://a:", "&key=", "sk-", "AKIA", "eyJ", "Basic ", "a"])
def test_looking_for_secrets_takes_time_in_proportion_to_the_text(unit: str) -> None:
    def look(size: int) -> Work:
        return partial(KEY_SHAPE.sub, "", unit * (size // len(unit)))

    assert is_within(20 * max(seconds(look(1 << 17)), 0.005), look(1 << 19))


@given(st.text(max_size=400), st.integers(0, 1500), st.integers(1, 30))
def test_a_secret_leaves_no_part_wherever_it_stands(tail: str, before: int, times: int) -> None:
    secret = "SECRET" * 20
    text = scrub(("é" * before + secret) * times + tail, (secret,))
    assert "SECRET" not in text
    assert len(text) <= 301


def test_ordinary_words_stay() -> None:
    text = (
        "The key temperature is unknown; task-specific sk-learn keyboards are fine. Write to "
        "a@b.c, see https://a.b/c?page=2&max_tokens=400 for Basic functionality; it is no token=1."
    )
    assert scrub(text) == text


def test_a_text_is_one_line() -> None:
    assert scrub(" a\r\n\tb ") == "a b"


def test_every_error_has_a_status_a_type_and_a_code() -> None:
    kinds = [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, GatewayError)
    ]
    assert len(kinds) == 11
    for kind in kinds:
        error = kind("words")
        assert 400 <= error.status < 600
        assert error.type in {"invalid_request_error", "api_error", "rate_limit_error"}
        assert error.code
        assert error.again in {"same", "elsewhere", "never"}
