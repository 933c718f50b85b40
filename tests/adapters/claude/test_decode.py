"""Claude's answers as events: the same for every cut, and honest about every ending."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import Truncated, Unavailable
from adapters.protocol import Finish, Json, Opened, ReasoningDelta, TextDelta, ToolCallStart, Usage
from adapters.shared.toolbox import alias
from tests.adapters.claude.streams import DALIAN, PARALLEL, PING, SHENYANG
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
