"""How chat completions end: with a reason, with an error, or cut."""

from __future__ import annotations

import json

import pytest

from adapters.errors import RateLimited, Truncated, Unavailable
from adapters.protocol import Json, Usage
from tests.adapters.compatible.answers import (
    CALL,
    DONE,
    EARLY,
    USAGE,
    answer_to,
    chunk,
    frame,
    good,
    heard,
    piece,
    whole,
)


@pytest.mark.parametrize(
    ("native", "calls", "reason", "notes"),
    [
        ("stop", False, "stop", []),
        ("length", False, "length", []),
        ("content_filter", False, "content_filter", []),
        ("tool_calls", True, "tool_calls", []),
        ("function_call", True, "tool_calls", []),
        ("stop", True, "tool_calls", []),
        ("length", True, "length", []),
        ("content_filter", True, "content_filter", []),
        ("eos", False, "stop", []),
        ("model_length", False, "length", []),
        ("tool_calls", False, "stop", ["finish_without_calls"]),
        ("max_tokens", False, "length", []),
        ("MAX_TOKENS", False, "length", []),
        ("sensitive", False, "content_filter", []),
        ("SAFETY", False, "content_filter", []),
        ("end_turn", False, "stop", []),
        ("tool_use", True, "tool_calls", []),
        ("bored", False, "stop", ["finish_unknown"]),
        ("bored", True, "tool_calls", ["finish_unknown"]),
    ],
)
def test_the_reason_is_one_of_openais(
    native: str, calls: bool, reason: str, notes: list[str]
) -> None:
    said = {"tool_calls": [CALL]} if calls else {"content": "hi"}
    for answer in (heard(chunk(said), chunk({}, native)), whole(said, native)):
        assert (good(answer).reason, answer.native) == (reason, native)
        assert answer.notes == notes


@pytest.mark.parametrize(
    ("native", "status"),
    [
        ("insufficient_system_resource", 503),
        ("error", 502),
        ("network_error", 502),
        ("abort", 502),
    ],
)
def test_an_answer_that_says_it_failed_is_an_error(native: str, status: int) -> None:
    for answer in (heard(chunk({}, native), DONE), whole({"content": ""}, native)):
        assert isinstance(answer.error, Unavailable)
        assert (answer.error.status, answer.batches) == (status, [])
    late = heard(chunk({"content": "half"}), chunk({}, native), DONE)
    assert (late.text, late.reason) == ("half", "")
    assert isinstance(late.error, Unavailable)


def test_the_error_beside_a_failed_reason_speaks() -> None:
    error = {"code": 429, "message": "the provider behind is busy"}
    answer = heard(chunk({"content": ""}, "error", error=error))
    assert isinstance(answer.error, RateLimited)
    assert "the provider behind is busy" in answer.error.message


@pytest.mark.parametrize("reason", ["stop", None, "length"])
def test_an_error_beside_choices_is_never_a_success(reason: str | None) -> None:
    error = {"code": 429, "message": "the provider behind is busy"}
    inside = {"delta": {}, "finish_reason": reason, "error": error}
    told = [
        heard(chunk({"content": "half"}), chunk({"content": ""}, reason, error=error), DONE),
        whole({"content": "half"}, reason, error=error),
    ]
    if reason:
        told.append(heard(chunk({"content": "half"}), frame({"choices": [inside]}), DONE))
    for answer in told:
        assert isinstance(answer.error, RateLimited)
        assert "the provider behind is busy" in answer.error.message
        assert answer.reason == ""


@pytest.mark.parametrize(
    ("said", "status", "words"),
    [
        ({"error": {"message": "went wrong"}}, 500, "went wrong"),
        ({"error": "went wrong"}, 500, "went wrong"),
        ({"object": "error", "message": "too long", "code": 400}, 400, "too long"),
        ({"type": "error", "message": "went wrong"}, 500, "went wrong"),
        ({"detail": "Not authenticated"}, 500, "Not authenticated"),
        ({"code": "rate_limit_exceeded", "message": "slow down"}, 429, "slow down"),
        ({"status": 404, "message": "no such model"}, 404, "no such model"),
        ({"base_resp": {"status_code": 2013, "status_msg": "chat is empty"}}, 400, "chat is empty"),
        ({"base_resp": {"status_code": 1004, "status_msg": "invalid key"}}, 502, "invalid key"),
        ({"base_resp": {"status_code": 9, "status_msg": "odd"}}, 500, "odd"),
        (
            {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "too many"}},
            429,
            "too many",
        ),
    ],
)
def test_an_error_in_place_of_an_answer_speaks(said: Json, status: int, words: str) -> None:
    plain = answer_to([json.dumps(said).encode()], streamed=False)
    for answer in (heard(frame(said), DONE), heard(chunk({}), frame(said)), plain):
        assert answer.error is not None
        assert answer.error.status == status
        assert words in answer.error.message
        assert answer.batches == []


@pytest.mark.parametrize(
    "said", [{"message": "queued"}, {"base_resp": {"status_code": 0}}, {"status": "running"}]
)
def test_what_only_keeps_the_client_company_is_no_error(said: Json) -> None:
    answer = good(heard(frame(said), chunk({"content": "hi"}), frame(said), chunk({}, "stop")))
    assert answer.text == "hi"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (b"event: error\ndata: The model went away.\n\n", "The model went away."),
        (b"event:error\ndata: two\ndata: lines\n\n", "two lines"),
        (b'event: error\ndata: "quoted"\n\n', "quoted"),
        (b'event: error\ndata: {"message": "bare"}\n\n', "bare"),
        (b'event: error\ndata: {"error": {"message": "whole"}}\n\n', "whole"),
        (b"event: error\ndata: without an end", "without an end"),
        (b"event: error\ndata:\n\n", "gave no reason"),
    ],
)
def test_an_error_event_speaks_whatever_form_its_words_have(event: bytes, words: str) -> None:
    for answer in (heard(event), heard(chunk({"content": "half"}), event)):
        assert isinstance(answer.error, Unavailable)
        assert words in answer.error.message


def test_a_reason_with_every_piece_ends_nothing_before_the_last() -> None:
    texts = [chunk({"content": text}, "stop", usage=EARLY) for text in ("one ", "two ")]
    last = chunk({"content": "three"}, "length", usage=USAGE)
    for end in ((DONE,), ()):
        answer = good(heard(*texts, last, *end))
        assert (answer.text, answer.reason, answer.usage) == (
            "one two three",
            "length",
            Usage(7, 5),
        )
    called = (
        piece("", name="f", id="a", index=0).replace(b"null", b'"stop"'),
        piece('{"a":', index=0).replace(b"null", b'"stop"'),
        piece("1}", index=0).replace(b"null", b'"stop"'),
    )
    answer = good(heard(*called, DONE))
    assert (answer.calls, answer.reason) == ([("a", "f", "function", '{"a":1}')], "tool_calls")


@pytest.mark.parametrize("terminator", [b"", b"data:[DONE]\n\n", DONE])
def test_a_reason_completes_a_stream_with_or_without_a_terminator(terminator: bytes) -> None:
    assert good(heard(chunk({"content": "hi"}), chunk({}, "stop"), terminator)).reason == "stop"


def test_a_reason_called_null_is_none() -> None:
    texts = [chunk({"content": text}, "null", usage=EARLY) for text in ("a", "b")]
    assert isinstance(heard(*texts).error, Truncated)
    answer = good(heard(*texts, chunk({"content": ""}, "length", usage=USAGE), DONE))
    assert (answer.text, answer.reason, answer.notes) == ("ab", "length", [])


@pytest.mark.parametrize("terminator", [b"", DONE])
@pytest.mark.parametrize(
    "before", [(), (chunk({"content": "hi"}),), (piece("{}", name="f", id="a"),)]
)
def test_no_reason_is_a_cut_even_with_a_terminator(
    before: tuple[bytes, ...], terminator: bytes
) -> None:
    answer = heard(*before, terminator)
    assert isinstance(answer.error, Truncated)
    assert answer.reason == ""


def test_usage_and_terminator_prove_an_ending_whose_reason_was_left_out() -> None:
    answer = good(heard(piece("{}", name="f", id="a", index=0), chunk({}, usage=USAGE), DONE))
    assert (answer.reason, answer.notes) == ("tool_calls", ["finish_unknown"])
    assert isinstance(heard(chunk({"content": "a"}), chunk({}, usage=USAGE)).error, Truncated)


def test_a_plain_answer_is_whole_without_a_reason() -> None:
    answer = good(whole({"content": "hi"}, None))
    assert (answer.reason, answer.notes) == ("stop", ["finish_unknown"])
