"""Chat completions as servers really send them, read to the same events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.compatible import Compatible
from adapters.errors import RateLimited, Refused, Truncated, Unavailable, UpstreamError
from adapters.protocol import ChatRequest, Finish, Json, RequestContext, Usage
from tests.support.cuts import cut, cuts, each_byte
from tests.support.upstreams.tape import Answer, fold, run, tape

DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}


def frame(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def chunk(delta: Json | None = None, reason: str | None = None, **top: Any) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": reason}
    return frame({"id": "c", "model": "their-model", "choices": [choice], **top})


def usage(**details: Any) -> bytes:
    return frame({"id": "c", "choices": [], "usage": {**USAGE, **details}})


def piece(arguments: Any = "", **members: Any) -> bytes:
    """A chunk with one piece of a call."""
    function = {"arguments": arguments}
    if "name" in members:
        function["name"] = members.pop("name")
    return chunk({"tool_calls": [{"function": function, **members}]})


def answer_to(pieces: Sequence[bytes], streamed: bool) -> Answer:
    asked = ChatRequest(
        "m", ({"role": "user", "content": "hi"},), call=RequestContext(streamed=streamed)
    )
    return run(fold(Compatible(tape(pieces)).stream(asked)))


def heard(*frames: bytes) -> Answer:
    return answer_to(frames, streamed=True)


def whole(message: Json | None, reason: str | None = "stop", **top: Any) -> Answer:
    body = {"model": "their-model", "choices": [{"message": message, "finish_reason": reason}]}
    return answer_to([json.dumps(body | top).encode()], streamed=False)


def good(answer: Answer) -> Answer:
    assert answer.error is None
    return answer


# Text, thoughts, refusals ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("said", "text", "thought"),
    [
        ({"content": "hi"}, "hi", ""),
        ({"role": "assistant", "content": "hi", "reasoning_content": None}, "hi", ""),
        ({"content": None, "reasoning_content": "hm"}, "", "hm"),
        ({"content": "", "reasoning": "hm"}, "", "hm"),
        ({"content": "hi", "reasoning": "hm", "reasoning_content": "hm"}, "hi", "hm"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", ""),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": "hi"},
                ]
            },
            "hi",
            "hm",
        ),
        (
            {
                "content": [
                    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                    {"type": "text", "text": "hi"},
                ]
            },
            "hi",
            "hm",
        ),
        ({"content": "hi", "reasoning_details": [{"text": "h"}, {"text": "m"}]}, "hi", "hm"),
        ({"content": "hi", "reasoning_details": [{"summary": "hm", "id": None}]}, "hi", "hm"),
        ({"content": "hi", "reasoning_details": [{"data": "sealed"}]}, "hi", ""),
        ({"content": "hi", "reasoning": "hm", "reasoning_details": [{"text": "hm"}]}, "hi", "hm"),
        ({"content": {"title": "苹果", "n": 1}}, '{"title":"苹果","n":1}', ""),
        ({"content": 0}, "0", ""),
        ({"content": 4.5}, "4.5", ""),
    ],
)
def test_text_and_thoughts_are_found_where_servers_put_them(
    said: Json, text: str, thought: str
) -> None:
    streamed = good(heard(chunk(said), chunk({}, "stop"), DONE))
    plain = good(whole(said))
    for answer in (streamed, plain):
        assert (answer.text, answer.reasoning, answer.reason) == (text, thought, "stop")


def test_a_refusal_is_a_refusal() -> None:
    streamed = heard(chunk({"refusal": "I will "}), chunk({"refusal": "not"}), chunk({}, "stop"))
    assert good(streamed).refusal == good(whole({"refusal": "I will not"})).refusal == "I will not"
    assert streamed.text == ""


def test_what_is_neither_text_nor_call_is_passed_on() -> None:
    notes = [{"type": "url_citation"}]
    streamed = heard(chunk({"content": "hi", "annotations": notes}), chunk({}, "stop"))
    assert good(streamed).asides == good(whole({"annotations": notes})).asides
    assert streamed.asides == [("annotations", notes)]
    assert good(whole({"audio": {"id": "a"}, "images": []})).asides == [("audio", {"id": "a"})]


def test_log_probabilities_stay_with_their_text() -> None:
    def with_logprobs(text: str, *tokens: str) -> bytes:
        logprobs = {"content": [{"token": token} for token in tokens], "refusal": None}
        choice = {"delta": {"content": text}, "logprobs": logprobs, "finish_reason": None}
        return frame({"choices": [choice]})

    split = heard(with_logprobs("", "\\xe6"), with_logprobs("沈", "\\xb2"), chunk({}, "stop"))
    assert [token["token"] for token in good(split).logprobs] == ["\\xe6", "\\xb2"]
    assert split.notes == []
    without_text = heard(with_logprobs("", "<call>"), chunk({}, "stop"))
    assert good(without_text).notes == ["logprobs_dropped"]


def test_who_answered_is_known_when_it_opens() -> None:
    top = {"system_fingerprint": "fp", "service_tier": "default"}
    answer = good(
        heard(chunk({"role": "assistant"}, **top), chunk({"content": "a"}), chunk({}, "stop"))
    )
    assert answer.opened is not None
    upstream = answer.opened.upstream
    assert (upstream.model, upstream.fingerprint, upstream.tier) == ("their-model", "fp", "default")


# Endings -----------------------------------------------------------------------------------------
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


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


STREAM = b"".join(
    (
        b": keep-alive\r\n\r\n",
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "查"}),
        chunk({"content": "沈阳 🌍"}),
        piece("", name="get_weather", id="a", index=0),
        piece('{"city":', index=0),
        piece('"沈阳"}', index=0),
        chunk({}, "tool_calls"),
        usage(),
        DONE,
    )
)


@given(cuts())
def test_the_network_may_cut_a_stream_anywhere(places: list[int]) -> None:
    assert answer_to(cut(STREAM, places), streamed=True) == good(heard(STREAM))


def test_a_stream_may_come_byte_by_byte() -> None:
    answer = good(answer_to(each_byte(STREAM), streamed=True))
    assert (answer.text, answer.reasoning, answer.reason) == ("沈阳 🌍", "查", "tool_calls")
    assert answer.calls == [("a", "get_weather", "function", '{"city":"沈阳"}')]


def test_a_stream_broken_off_anywhere_before_its_reason_never_looks_complete() -> None:
    end = STREAM.index(b'"tool_calls"}]}\n\n') + len(b'"tool_calls"}]}')
    for place in range(len(STREAM)):
        answer = answer_to([STREAM[:place]], streamed=True)
        assert isinstance(answer.error, Truncated) == (place < end), place
        assert (answer.reason == "tool_calls") == (place >= end), place


def test_what_stands_behind_the_end_is_not_heard() -> None:
    answer = good(
        heard(chunk({"content": "hi"}), chunk({}, "stop"), DONE, chunk({"content": "ghost"}))
    )
    assert answer.text == "hi"
    assert [type(event) for event in answer.batches[-1]] == [Finish]


def test_padding_blank_lines_and_empty_choices_say_nothing() -> None:
    filtered = frame({"choices": [], "prompt_filter_results": []})
    asynchronous = frame({"choices": [{"index": 0, "content_filter_results": {}}]})
    padded = chunk({"content": "hi"}, obfuscation="xxxx")
    answer = good(
        heard(b": OPENROUTER PROCESSING\n\n", filtered, padded, asynchronous, chunk({}, "stop"))
    )
    assert (answer.text, answer.notes) == ("hi", [])
    body = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}
    assert good(answer_to([b"\n\n \n", json.dumps(body).encode()], streamed=False)).text == "hi"


def test_a_whole_answer_in_one_event_is_an_answer() -> None:
    message = {"role": "assistant", "content": "hi", "tool_calls": [CALL]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    answer = good(heard(frame({"object": "chat.completion", "choices": [choice]}), DONE))
    assert (answer.text, len(answer.calls), answer.reason) == ("hi", 1, "tool_calls")


def test_sources_beside_the_answer_are_named() -> None:
    for said in ({"citations": ["https://a"]}, {"search_results": [{"url": "https://a"}]}):
        for answer in (
            heard(chunk({"content": "hi"}, **said), chunk({}, "stop", **said)),
            whole({"content": "hi"}, **said),
        ):
            assert (good(answer).text, answer.notes) == ("hi", ["citations_dropped"])


def test_json_written_loosely_is_read() -> None:
    logprobs = b'{"content": [{"token": "a", "logprob": -Infinity, "bytes": [97]}]}'
    choice = b'{"delta": {"content": "a\\ud83d\xe6"}, "logprobs": %b}' % logprobs
    answer = good(heard(b'data: {"choices": [%b]}\n\n' % choice, chunk({}, "stop"), DONE))
    assert answer.text == "a\ufffd\ufffd"
    assert [token["logprob"] for token in answer.logprobs] == [-9999.0]
    body = json.dumps({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]})
    for streamed in (False, True):
        assert good(answer_to([b"\xef\xbb\xbf" + body.encode()], streamed)).text == "hi"


def test_further_choices_are_left_out_and_named() -> None:
    second = {"index": 1, "delta": {"content": "B"}, "finish_reason": "stop"}
    first = {"index": 0, "delta": {"content": "A"}, "finish_reason": None}
    streamed = good(heard(frame({"choices": [second, first]}), chunk({}, "stop")))
    choices = [{"message": {"content": text}, "finish_reason": "stop"} for text in "AB"]
    plain = good(whole(None, choices=choices))
    for answer in (streamed, plain):
        assert (answer.text, answer.notes) == ("A", ["choices_dropped"])


# Usage -------------------------------------------------------------------------------------------
EARLY = {"prompt_tokens": 7, "completion_tokens": 1}


@pytest.mark.parametrize(
    "frames",
    [
        (chunk({"content": "hi"}), chunk({}, "stop", usage=USAGE), DONE),
        (chunk({"content": "hi"}), chunk({}, "stop"), usage(), DONE),
        (chunk({"content": "hi"}, usage=EARLY), chunk({}, "stop"), usage(), DONE),
        (chunk({"content": "hi"}, usage=EARLY), chunk({}, "stop", usage=USAGE)),
        (chunk({"content": "hi"}), chunk({}, "stop"), chunk({"content": ""}, usage=USAGE)),
        (chunk({"content": "hi"}, usage=USAGE), chunk({}, "stop"), DONE),
        (
            chunk({"content": "hi"}),
            frame({"choices": [{"delta": {}, "finish_reason": "stop", "usage": USAGE}]}),
            DONE,
        ),
        (
            chunk({"content": "hi"}),
            frame({"choices": [{"delta": {}, "finish_reason": "stop", "usage": EARLY}]}),
            usage(),
        ),
    ],
)
def test_usage_counts_wherever_it_comes_and_the_last_one_is_the_whole(
    frames: tuple[bytes, ...],
) -> None:
    answer = good(heard(*frames))
    assert (answer.text, answer.usage) == ("hi", Usage(7, 5))


@pytest.mark.parametrize(
    ("said", "usage", "notes"),
    [
        (None, None, []),
        (USAGE, Usage(7, 5), []),
        ({"completion_tokens": 5}, Usage(0, 5), ["usage_estimated"]),
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": 3}}, Usage(7, 5, cached=3), []),
        ({**USAGE, "prompt_cache_hit_tokens": 4}, Usage(7, 5, cached=4), []),
        ({**USAGE, "cached_tokens": 0}, Usage(7, 5, cached=0), []),
        (
            {**USAGE, "prompt_tokens_details": {"cache_write_tokens": 2, "audio_tokens": 0}},
            Usage(7, 5, cache_write=2, extra={"prompt_tokens_details": {"audio_tokens": 0}}),
            [],
        ),
        (
            {**USAGE, "completion_tokens_details": {"reasoning_tokens": 4}, "cost": 0.1},
            Usage(7, 5, reasoning=4),
            [],
        ),
    ],
)
def test_usage_is_what_was_said_and_never_a_guess(
    said: Json | None, usage: Usage | None, notes: list[str]
) -> None:
    answer = good(whole({"content": "hi"}, usage=said))
    assert (answer.usage, answer.notes) == (usage, notes)


# Calls -------------------------------------------------------------------------------------------
A, B = '{"a":1}', '{"b":2}'
TWO = [("1", "f", "function", A), ("2", "g", "function", B)]
STREAMED_CALLS: Mapping[str, tuple[bytes, ...]] = {
    "openai": (
        piece("", name="f", id="1", index=0),
        piece(A[:3], index=0),
        piece(A[3:], index=0),
        piece(B, name="g", id="2", index=1),
    ),
    "no index": (piece(A, name="f", id="1"), piece(B, name="g", id="2")),
    "no index, id on the first piece": (
        piece(A[:3], name="f", id="1"),
        piece(A[3:]),
        piece(B, name="g", id="2"),
    ),
    "one index for all": (piece(A, name="f", id="1", index=0), piece(B, name="g", id="2", index=0)),
    "id and name repeated": (
        piece(A[:3], name="f", id="1", index=0),
        piece(A[3:], name="f", id="1", index=0),
        piece(B, name="g", id="2", index=1),
    ),
    "mixed up": (
        piece(A[:3], name="f", id="1", index=0),
        piece(B[:3], name="g", id="2", index=1),
        piece(A[3:], index=0),
        piece(B[3:], index=1),
    ),
    "counted from one, with a gap": (
        piece(A, name="f", id="1", index=1),
        piece(B, name="g", id="2", index=5),
    ),
    "name behind the arguments": (
        piece(A[:3], id="1", index=0),
        piece(A[3:], name="f", index=0),
        piece(B, name="g", id="2", index=1),
    ),
    "arguments as objects": (
        piece({"a": 1}, name="f", id="1", index=0),
        piece({"b": 2}, name="g", id="2", index=1),
    ),
    "null before the arguments": (
        piece(None, name="f", id="1", index=0),
        piece(A, index=0, id=None),
        piece(B, name="g", id="2", index=1),
    ),
    "both without a mark of their own behind their names": (
        chunk(
            {
                "tool_calls": [
                    {"id": "1", "function": {"name": "f", "arguments": ""}},
                    {"id": "2", "function": {"name": "g", "arguments": ""}},
                ]
            }
        ),
        chunk({"tool_calls": [{"function": {"arguments": text}} for text in (A[:3], B[:3])]}),
        chunk({"tool_calls": [{"function": {"arguments": text}} for text in (A[3:], B[3:])]}),
    ),
    "index in words": (
        piece(A, name="f", id="1", index="zero"),
        piece(B, name="g", id="2", index="one"),
    ),
    "both in one chunk": (
        chunk(
            {
                "tool_calls": [
                    {"index": 0, "id": "1", "function": {"name": "f", "arguments": A}},
                    {"index": 1, "id": "2", "function": {"name": "g", "arguments": B}},
                ]
            }
        ),
    ),
}


@pytest.mark.parametrize("manner", STREAMED_CALLS)
def test_streamed_calls_come_out_the_same_however_they_are_told(manner: str) -> None:
    answer = good(heard(*STREAMED_CALLS[manner], chunk({}, "tool_calls"), DONE))
    assert (answer.calls, answer.reason, answer.notes) == (TWO, "tool_calls", [])


def test_calls_without_ids_get_their_own() -> None:
    said = [
        {"function": {"name": "f", "arguments": A}},
        {"function": {"name": "f", "arguments": B}},
    ]
    plain = good(whole({"tool_calls": said}))
    streamed = good(heard(*(chunk({"tool_calls": [call]}) for call in said), chunk({}, "stop")))
    assert plain.calls == streamed.calls
    (first, *_), (second, *_) = plain.calls
    assert first != second
    assert [arguments for *_, arguments in plain.calls] == [A, B]


def test_calls_of_one_index_without_ids_stay_two() -> None:
    repeated = (piece(A[:3], name="f", index=0), piece(A[3:], name="f", index=0))
    for first in ((piece(A, name="f", index=0),), repeated):
        answer = good(heard(*first, piece(B, name="g", index=0), chunk({}, "tool_calls"), DONE))
        assert [call[1:] for call in answer.calls] == [
            ("f", "function", A),
            ("g", "function", B),
        ]
        assert answer.notes == []


def test_a_call_behind_the_reason_is_a_call_too() -> None:
    late = chunk({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "g"}}]}, "stop")
    answer = good(heard(chunk({"content": "hi"}, "stop"), late, DONE))
    assert (answer.calls, answer.reason) == ([("b", "g", "function", "{}")], "tool_calls")


def test_whole_calls_stay_two_even_with_one_id() -> None:
    answer = good(whole({"content": None, "tool_calls": [CALL, CALL]}))
    assert [name for _, name, _, _ in answer.calls] == ["f", "f"]
    assert len({identity for identity, *_ in answer.calls}) == 2


def test_a_call_without_arguments_says_an_empty_object() -> None:
    streamed = heard(piece("", name="f", id="a", index=0), chunk({}, "tool_calls"))
    for answer in (streamed, whole({"tool_calls": [{"id": "a", "function": {"name": "f"}}]})):
        assert good(answer).calls == [("a", "f", "function", "{}")]


def test_a_call_that_never_gets_a_name_is_left_out_and_named() -> None:
    streamed = heard(piece(A, id="a", index=0), chunk({}, "tool_calls"))
    plain = whole({"tool_calls": [{"id": "a", "function": {"arguments": A}}]}, "tool_calls")
    for answer in (streamed, plain):
        assert (good(answer).calls, answer.reason) == ([], "stop")
        assert "call_without_name" in answer.notes


def test_broken_arguments_are_passed_on_as_they_are_and_named() -> None:
    answer = good(heard(piece('{"city": "Par', name="f", id="a", index=0), chunk({}, "tool_calls")))
    assert answer.calls == [("a", "f", "function", '{"city": "Par')]
    assert answer.notes == ["arguments_invalid"]


def test_the_legacy_function_call_is_a_call() -> None:
    said = {"name": "f", "arguments": A}
    streamed = heard(
        chunk({"function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": A}}),
        chunk({}, "function_call"),
    )
    for answer in (streamed, whole({"content": None, "function_call": said}, "function_call")):
        assert [call[1:] for call in good(answer).calls] == [("f", "function", A)]
        assert answer.reason == "tool_calls"


def test_custom_calls_are_text_and_stay_it() -> None:
    first = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "run", "input": "pri"}}
    more = {"index": 0, "custom": {"input": "nt(1)"}}
    second = {"index": 1, "id": "b", "type": "custom", "custom": {"name": "run", "input": ""}}
    pieces = [chunk({"tool_calls": [said]}) for said in (first, more, second)]
    answer = good(heard(*pieces, chunk({}, "tool_calls")))
    assert answer.calls == [("a", "run", "custom", "print(1)"), ("b", "run", "custom", "")]
    assert answer.notes == []


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
