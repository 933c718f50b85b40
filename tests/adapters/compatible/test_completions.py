"""Chat completions as servers really send them, read to the same events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.compatible.completions import decode
from adapters.compatible.state import State
from adapters.errors import Truncated
from adapters.protocol import Event, Finish, Json
from tests.adapters.compatible.answers import (
    CALL,
    DONE,
    answer_to,
    chunk,
    frame,
    good,
    heard,
    piece,
    usage,
    whole,
)
from tests.support.cuts import cut, cuts, each_byte

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


_filling: st.SearchStrategy[Any] = st.sampled_from(["", None, []])
_said: Mapping[str, st.SearchStrategy[Any]] = {
    "role": st.just("assistant") | _filling,
    "content": st.sampled_from(["a", "b", 0, {}, [{"text": "c"}]]) | _filling,
    "reasoning_content": st.sampled_from(["hm", 1]) | _filling,
    "reasoning": st.just("hm") | _filling,
    "refusal": st.just("no") | _filling,
    "tool_calls": st.sampled_from(
        [[{"index": 0, "function": {"name": "f", "arguments": "{"}}], [{"index": 0}], 0, "x"]
    )
    | _filling,
    "odd": st.sampled_from([1, "x"]) | _filling,
}
_deltas = st.lists(st.fixed_dictionaries({}, optional={**_said}), min_size=1, max_size=4)


def _told(deltas: list[Json], more: Json) -> object:
    """All events, or that the answer is unreadable; `more` stands beside the choices."""
    state = State()
    events: list[Event] = []
    try:
        for delta in deltas:
            events += decode(orjson.dumps({"choices": [{"delta": delta}], **more}), state)
    except (AttributeError, LookupError, TypeError) as error:
        return type(error)
    return events


@given(deltas=_deltas)
def test_a_delta_with_one_thing_to_say_is_read_as_any_other(deltas: list[Json]) -> None:
    filled = [{"role": "assistant", "odd": None, **delta} for delta in deltas]
    # Beside an error, also one that is none, each member is looked at.
    assert _told(filled, {}) == _told(filled, {"error": None})
