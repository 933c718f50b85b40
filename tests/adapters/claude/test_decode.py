"""Claude's answers as events: the same for every cut, and honest about every ending."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.claude.decode import State, close, decode, decode_answer
from adapters.errors import RateLimited, Refused, Truncated, Unavailable, UpstreamError
from adapters.protocol import Finish, Json, Opened, ReasoningDelta, TextDelta, ToolCallStart, Usage
from adapters.shared.toolbox import alias
from tests.support.cuts import cut, cuts, each_byte, halves
from tests.support.upstreams.claude_wire import (
    WEATHER,
    begin,
    block,
    call,
    end,
    hear,
    message,
    sse,
    text,
    thought,
)

PING: Json = {"type": "ping"}
SHENYANG, DALIAN = '{"city":"沈阳"}', '{"city": "大连", "days": 1.0}'
PARALLEL = sse(
    begin(cache_read_input_tokens=90, cache_creation_input_tokens=5),
    *thought(0, "Two ", "cities: 沈阳", signature="EqQB"),
    PING,
    *text(1, "Looking ", "", "up 🌦"),
    *call(2, "toolu_1", "get_weather", "", '{"city":', '"沈阳"}'),
    *call(3, "toolu_2", "get_weather", *DALIAN),
    *end("tool_use", output_tokens=61, output_tokens_details={"thinking_tokens": 20}),
)
CALLS = [
    ("toolu_1", "get_weather", "function", SHENYANG),
    ("toolu_2", "get_weather", "function", DALIAN),
]


def test_thought_text_and_parallel_calls() -> None:
    answer = hear(PARALLEL)
    assert answer.error is None
    assert (answer.reasoning, answer.text) == ("Two cities: 沈阳", "Looking up 🌦")
    assert answer.calls == CALLS
    assert (answer.reason, answer.native) == ("tool_calls", "tool_use")
    assert answer.usage == Usage(105, 61, cached=90, cache_write=5, reasoning=20)
    assert answer.opened is not None
    assert answer.opened.upstream.model == "claude-x"


@given(cuts())
def test_every_cut_gives_the_same(places: list[int]) -> None:
    assert hear(*cut(PARALLEL, places)) == hear(PARALLEL)


def test_byte_by_byte_gives_the_same() -> None:
    assert hear(*each_byte(PARALLEL)) == hear(PARALLEL)


def test_no_beginning_of_a_stream_passes_for_the_whole() -> None:
    stream = sse(begin(), *text(0, "好"), *call(1, "a", "f", "{}"), *end("tool_use"))
    reasoned = stream.index(b"event: message_stop")
    for first, _ in halves(stream):
        answer = hear(first)
        if len(first) < reasoned - 2:
            assert isinstance(answer.error, Truncated), first
            assert answer.reason == ""
        else:
            assert (answer.error, answer.reason) == (None, "tool_calls")


def test_nothing_opens_before_something_is_said() -> None:
    waiting = sse(begin(), PING, next(text(0)), PING, *list(thought(0))[:1])
    answer = hear(waiting, sse({"type": "error", "error": {"type": "overloaded_error"}}))
    assert answer.batches == []
    assert isinstance(answer.error, Unavailable)


@pytest.mark.parametrize(
    ("said", "opens_with"),
    [
        (text(0, "a"), TextDelta),
        (thought(0, "a"), ReasoningDelta),
        (call(0, "a", "f"), ToolCallStart),
        (iter(()), Finish),
    ],
)
def test_opened_comes_with_the_first_word(said: Iterator[Json], opens_with: type) -> None:
    answer = hear(*each_byte(sse(begin(), PING, *said, *end())))
    assert [type(event) for event in answer.batches[0]][:2] == [Opened, opens_with]


# Calls ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [(), ("",), ("", "", "")])
def test_call_without_arguments_says_an_empty_object(pieces: Sequence[str]) -> None:
    said = [*call(0, "a", "now", *pieces), *call(1, "b", "get_weather", SHENYANG)]
    answer = hear(sse(begin(), *said, *end("tool_use")))
    assert [call[3] for call in answer.calls] == ["{}", SHENYANG]


def test_call_after_one_without_arguments_is_not_held_back() -> None:
    said = [*call(0, "a", "now"), *call(1, "b", "get_weather", '{"ci')]
    answer = hear(sse(begin(), *said))
    assert answer.calls[1][3] == '{"ci'


@pytest.mark.parametrize("number", ["123456789012345678901234", "3.14159265358979323846"])
def test_numbers_of_whole_arguments_keep_their_digits(number: str) -> None:
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 0.5, "x": [0.25]}}
    answer = hear(
        message({"type": "text", "text": "hi"}, use).replace(b"0.25", number.encode()),
        streamed=False,
    )
    assert answer.calls == [("a", "f", "function", f'{{"n":0.5,"x":[{number}]}}')]


def test_a_message_that_is_whole_in_its_first_event_is_heard() -> None:
    result = {"type": "code_execution_tool_result", "tool_use_id": "s", "content": {"stdout": "1"}}
    caller = {"type": "code_execution_20250825", "tool_id": "s"}
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {"id": 1}, "caller": caller}
    start = begin()
    start["message"] |= {"content": [result, use], "stop_reason": "tool_use"}
    for pieces in ([sse(start, {"type": "message_stop"})], [sse(start)]):
        answer = hear(*pieces)
        assert answer.error is None
        assert answer.calls == [("a", "f", "function", '{"id":1}')]
        assert (answer.reason, answer.notes) == ("tool_calls", ["block_not_shown"])
        assert answer.turn == {"role": "assistant", "content": [result, use]}


def test_call_may_bring_its_arguments_at_once() -> None:
    start = {"type": "tool_use", "id": "a", "name": "f", "input": {"city": "沈阳", "n": 1.0}}
    answer = hear(sse(begin(), *block(0, start), *end("tool_use")))
    assert answer.calls == [("a", "f", "function", '{"city":"沈阳","n":1.0}')]


def test_call_without_an_id_gets_one() -> None:
    start = {"type": "tool_use", "name": "f", "input": {}}
    (made,) = hear(sse(begin(), *block(0, start), *end("tool_use"))).calls
    assert made[0].startswith("call_")


def test_text_after_a_call_is_text() -> None:
    said = [*text(0, "a"), *call(1, "x", "f", "{}"), *text(2, "b"), *call(3, "y", "f", "{}")]
    answer = hear(sse(begin(), *said, *end("tool_use")))
    assert (answer.text, len(answer.calls)) == ("ab", 2)


def test_call_cut_by_the_limit_is_kept_and_named_and_never_passes_for_a_call() -> None:
    half = list(call(0, "a", "f", '{"city": "沈'))[:-1]
    answer = hear(sse(begin(), *half, *end("max_tokens")))
    assert (answer.reason, answer.calls[0][3]) == ("length", '{"city": "沈')
    assert answer.notes == ["arguments_invalid"]


def test_chinese_and_custom_tools_get_their_names_back() -> None:
    chinese = {"type": "function", "function": {"name": "查询天气"}}
    custom = {"type": "custom", "custom": {"name": "run_sql"}}
    said = [
        *call(0, "a", alias("查询天气"), "{}"),
        *call(1, "b", "run_sql", '{"input": "SELECT ', "1", '"}'),
    ]
    answer = hear(sse(begin(), *said, *end("tool_use")), tools=[chinese, custom])
    assert answer.calls == [
        ("a", "查询天气", "function", "{}"),
        ("b", "run_sql", "custom", "SELECT 1"),
    ]


def test_second_call_is_left_out_where_parallel_calls_were_forbidden() -> None:
    said = [*call(0, "a", "get_weather", SHENYANG), *call(1, "b", "get_weather", DALIAN)]
    stream = sse(begin(), *said, *end("tool_use"))
    answer = hear(stream, tools=[WEATHER], parallel_tool_calls=False)
    assert [call[0] for call in answer.calls] == ["a"]
    assert "parallel_calls_dropped" in answer.notes


# Endings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("native", "reason", "notes"),
    [
        ("end_turn", "stop", []),
        ("stop_sequence", "stop", []),
        ("max_tokens", "length", []),
        ("model_context_window_exceeded", "length", []),
        ("pause_turn", "length", ["turn_paused"]),
        ("refusal", "content_filter", ["refusal"]),
        ("tool_use", "stop", ["finish_without_calls"]),
        ("invented_later", "stop", ["finish_unknown"]),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_reason(native: str, reason: str, notes: list[str], streamed: bool) -> None:
    stream = sse(begin(), *text(0, "a"), *end(native))
    plain = message({"type": "text", "text": "a"}, reason=native)
    answer = hear(stream if streamed else plain, streamed=streamed)
    assert (answer.reason, answer.native, answer.notes) == (reason, native, notes)


def test_end_turn_beside_a_call_stays_stop() -> None:
    answer = hear(sse(begin(), *call(0, "a", "f", "{}"), *end("end_turn")))
    assert (answer.reason, len(answer.calls)) == ("stop", 1)


def test_reason_waits_for_the_terminator_and_its_last_usage() -> None:
    first, last = end("end_turn", output_tokens=5), end(None, output_tokens=9, input_tokens=12)
    answer = hear(sse(begin(), *text(0, "a"), first[0], last[0], last[1]))
    assert (answer.reason, answer.usage) == ("stop", Usage(12, 9))


def test_reason_is_enough_where_the_terminator_is_missing() -> None:
    answer = hear(sse(begin(), *text(0, "a"), *end("max_tokens")[:1]))
    assert (answer.error, answer.reason) == (None, "length")


def test_terminator_without_a_reason_ends_the_answer_and_is_named() -> None:
    answer = hear(sse(begin(), *text(0, "a"), {"type": "message_stop"}))
    assert (answer.reason, answer.notes) == ("stop", ["finish_unknown"])


def test_refusal_says_why() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "Not this."}
    answer = hear(sse(begin(), *text(0, "Well"), *end("refusal", details)))
    assert (answer.text, answer.refusal) == ("Well", "Not this.")
    assert answer.reason == "content_filter"
    assert answer.turn is None


def test_empty_answer_is_an_answer() -> None:
    for streamed, body in ((True, sse(begin(), *end())), (False, message())):
        answer = hear(body, streamed=streamed)
        assert (answer.error, answer.text, answer.reason) == (None, "", "stop")


@pytest.mark.parametrize(
    ("begun", "ended", "usage", "notes"),
    [
        ({}, {}, Usage(10, 5), []),
        ({"cache_read_input_tokens": 7}, {}, Usage(17, 5, cached=7), []),
        ({"cache_creation_input_tokens": 0}, {}, Usage(10, 5, cache_write=0), []),
        ({}, {"input_tokens": 300, "cache_read_input_tokens": 4}, Usage(304, 5, cached=4), []),
        ({}, {"input_tokens": None}, Usage(10, 5), []),
        ({"input_tokens": None}, {}, Usage(0, 5), ["usage_estimated"]),
    ],
)
def test_usage(begun: Json, ended: Json, usage: Usage, notes: list[str]) -> None:
    answer = hear(sse(begin(**begun), *text(0, "a"), *end(**ended)))
    assert (answer.usage, answer.notes) == (usage, notes)


def test_answer_without_usage_has_zeros_that_are_named() -> None:
    body = {
        "type": "message",
        "content": [{"type": "text", "text": "a"}],
        "stop_reason": "end_turn",
    }
    answer = hear(orjson.dumps(body), streamed=False)
    assert (answer.usage, answer.notes) == (Usage(0, 0), ["usage_estimated"])


def test_service_tier_is_said_in_openais_words() -> None:
    answer = hear(sse(begin(service_tier="standard"), *text(0, "a"), *end()))
    assert answer.opened is not None
    assert answer.opened.upstream.tier == "default"


# What OpenAI's shape cannot say -----------------------------------------------------------------


def content(turn: Json | None) -> list[Json]:
    assert turn is not None
    assert turn["role"] == "assistant"
    found: list[Json] = turn["content"]
    return found


def test_turn_keeps_claudes_own_blocks_in_order() -> None:
    redacted = {"type": "redacted_thinking", "data": "Ev8="}
    stream = sse(
        begin(),
        *thought(0, "a", signature="one"),
        *block(1, redacted),
        *text(2, "b", "c"),
        *call(3, "x", "f", '{"n": 1.10, "b": 1e2}'),
        *thought(4, signature="two"),
        *call(5, "y", "g"),
        *end("tool_use"),
    )
    answer = hear(stream)
    assert answer.reasoning == "a"
    assert content(answer.turn) == [
        {"type": "thinking", "thinking": "a", "signature": "one"},
        redacted,
        {"type": "text", "text": "bc"},
        {"type": "tool_use", "id": "x", "name": "f", "input": {"n": 1.1, "b": 100.0}},
        {"type": "thinking", "thinking": "", "signature": "two"},
        {"type": "tool_use", "id": "y", "name": "g", "input": {}},
    ]
    assert answer.asides == [], "thoughts between calls cannot be echoed as a list before them"


def test_leading_thoughts_are_offered_for_echo() -> None:
    answer = hear(PARALLEL)
    signed = {"type": "thinking", "thinking": "Two cities: 沈阳", "signature": "EqQB"}
    assert answer.asides == [("thinking_blocks", [signed])]


@pytest.mark.parametrize(
    "blocks",
    [
        [],
        [*text(0, "a")],
        [*text(0, "a"), *call(1, "x", "f", "{}")],
        [*text(0, ""), *call(1, "x", "f", "{}")],
        [*thought(0, "cut before it was signed", signature="")],
        [*thought(0, "a"), *call(1, "x", "f", '{"broken')],
    ],
)
def test_no_turn_where_text_and_calls_say_it_all_or_claude_would_not_take_it_back(
    blocks: list[Json],
) -> None:
    assert hear(sse(begin(), *blocks, *end())).turn is None


def test_text_after_a_call_makes_a_turn() -> None:
    answer = hear(sse(begin(), *call(0, "x", "f", "{}"), *text(1, "a"), *end("tool_use")))
    assert [block["type"] for block in content(answer.turn)] == ["tool_use", "text"]


def test_thoughts_that_are_only_counted_say_nothing() -> None:
    start = {"type": "thinking", "thinking": "", "signature": ""}
    counted = {"type": "thinking_delta", "estimated_tokens": 128}
    signed = {"type": "signature_delta", "signature": "s"}
    answer = hear(sse(begin(), *block(0, start, counted, signed), *text(1, "hi"), *end()))
    assert (answer.error, answer.reasoning, answer.text) == (None, "", "hi")
    assert content(answer.turn)[0] == {"type": "thinking", "thinking": "", "signature": "s"}


def test_thought_of_a_signature_alone_says_nothing_and_is_kept() -> None:
    answer = hear(sse(begin(), *thought(0, signature="s"), *text(1, "a"), *end()))
    assert (answer.reasoning, answer.text) == ("", "a")
    assert content(answer.turn)[0] == {"type": "thinking", "thinking": "", "signature": "s"}


def test_server_tools_and_citations_stay_behind_by_name_and_cost_no_text() -> None:
    searched = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    query = {"type": "input_json_delta", "partial_json": '{"query":"x"}'}
    cited = {"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "b"}}
    said = {"type": "text_delta", "text": "b"}
    stream = sse(
        begin(),
        *text(0, "a"),
        *block(1, searched, query),
        *block(2, found),
        *block(3, {"type": "text", "text": "", "citations": []}, said, cited),
        *block(4, found),
        *end(),
    )
    answer = hear(stream)
    assert (answer.text, answer.calls) == ("ab", [])
    assert answer.notes == ["block_not_shown"] * 2 + ["citations_dropped"]
    assert content(answer.turn)[1]["input"] == {"query": "x"}
    assert content(answer.turn)[3]["citations"] == [cited["citation"]]


def page(url: Any, title: Any = "T", **more: Any) -> Json:
    return {"type": "web_search_result_location", "url": url, "title": title, **more}


def cited(url: str, start: int, end: int, title: str = "T") -> Json:
    place = {"start_index": start, "end_index": end, "title": title, "url": url}
    return {"type": "url_citation", "url_citation": place}


def resting(index: int, said: str, *citations: Json) -> Iterator[Json]:
    """A streamed block of text and what it rests on."""
    words = {"type": "text_delta", "text": said}
    rests = [{"type": "citations_delta", "citation": citation} for citation in citations]
    return block(index, {"type": "text", "text": "", "citations": []}, *rests, words)


DOCUMENT: Json = {"type": "char_location", "document_index": 0, "document_title": "D"}


@pytest.mark.parametrize(
    ("citations", "expected", "notes"),
    [
        ([page("https://a")], [("https://a", "T")], []),
        ([page("https://a", cited_text="x"), page("https://a", cited_text="y")],
         [("https://a", "T")], []),
        ([page("https://a"), page("HTTP://b", None)], [("https://a", "T"), ("HTTP://b", "")], []),
        ([{"type": "search_result_location", "source": "https://s", "title": "S"}],
         [("https://s", "S")], []),
        ([{"type": "search_result_location", "source": "shelf 3"}], [], ["citations_dropped"]),
        ([DOCUMENT, DOCUMENT, page("https://a")], [("https://a", "T")], ["citations_dropped"]),
        ([page("javascript:alert(1)"), page(7)], [], ["citations_dropped"]),
    ],
)  # fmt: skip
def test_citations_with_an_address_are_annotations_and_others_are_named(
    citations: list[Json], expected: list[tuple[str, str]], notes: list[str]
) -> None:
    streamed = hear(
        sse(begin(), *text(0, "沈阳: "), *resting(1, "晴 5℃", *citations), *text(2, "."), *end())
    )
    blocks = [{"type": "text", "text": "沈阳: "},
              {"type": "text", "text": "晴 5℃", "citations": citations},
              {"type": "text", "text": "."}]  # fmt: skip
    whole = {**begin()["message"], "content": blocks, "stop_reason": "end_turn"}
    for answer in (streamed, hear(orjson.dumps(whole), streamed=False)):
        assert (answer.text, answer.error, answer.notes) == ("沈阳: 晴 5℃.", None, notes)
        (said,) = [value for _, value in answer.asides] or [[]]
        assert said == [cited(url, 4, 8, title) for url, title in expected]
        assert content(answer.turn)[1]["citations"] == citations  # Claude has its own back


def test_a_summary_of_what_was_before_is_kept_for_claude() -> None:
    pieces = [("Earlier ", "one"), (None, None), ("summed up", "two")]
    deltas = [
        {"type": "compaction_delta", "content": words, "encrypted_content": sealed}
        for words, sealed in pieces
    ]
    start = {"type": "compaction", "content": None, "encrypted_content": None}
    answer = hear(sse(begin(), *block(0, start, *deltas), *text(1, "hi"), *end()))
    assert (answer.text, answer.notes) == ("hi", ["block_not_shown"])
    assert content(answer.turn)[0] == {
        "type": "compaction",
        "content": "Earlier summed up",
        "encrypted_content": "two",
    }


def test_what_is_invented_later_is_skipped() -> None:
    strange = block(0, {"type": "hologram"}, {"type": "hologram_delta", "light": 1})
    news = {"type": "weather_report", "sunny": True}
    answer = hear(sse(begin(), PING, *strange, news, *text(1, "a"), PING, *end()))
    assert (answer.error, answer.text, answer.reason) == (None, "a", "stop")


# Plain answers ----------------------------------------------------------------------------------

_words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_values = st.dictionaries(_words, st.one_of(_words, st.integers(-9, 9), st.booleans()), max_size=3)
_blocks = st.one_of(
    _words.map(lambda said: {"type": "text", "text": said}),
    _words.map(lambda said: {"type": "thinking", "thinking": said, "signature": "s"}),
    _words.map(lambda said: {"type": "redacted_thinking", "data": said}),
    _values.map(lambda said: {"type": "tool_use", "id": "", "name": "f", "input": said}),
)


def rendered(blocks: Sequence[Json], split: Callable[[str], list[str]]) -> Iterator[Json]:
    for index, said in enumerate(blocks):
        match said:
            case {"type": "text"}:
                yield from text(index, *split(said["text"]))
            case {"type": "thinking"}:
                yield from thought(index, *split(said["thinking"]), signature="s")
            case {"type": "tool_use"}:
                arguments = orjson.dumps(said["input"]).decode()
                yield from call(index, said["id"], "f", *split(arguments))
            case _:
                yield from block(index, said)


@given(st.lists(_blocks, max_size=5), st.integers(1, 5), st.booleans())
def test_plain_answer_and_stream_say_the_same(blocks: list[Json], size: int, last: bool) -> None:
    blocks = [{**said, "id": f"t{at}"} if "id" in said else said for at, said in enumerate(blocks)]
    reason = "tool_use" if last else "end_turn"
    pieces = rendered(blocks, lambda said: [said[i : i + size] for i in range(0, len(said), size)])
    streamed = hear(sse(begin(), *pieces, *end(reason)))
    plain = hear(message(*blocks, reason=reason), streamed=False)
    assert streamed == plain


def test_stream_asked_for_and_one_answer_given() -> None:
    assert hear(message({"type": "text", "text": "a"})).text == "a"


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
