"""Usage and calls of chat completions, however servers tell them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from adapters.protocol import Json, Usage
from tests.adapters.compatible.answers import (
    CALL,
    DONE,
    EARLY,
    USAGE,
    chunk,
    frame,
    good,
    heard,
    piece,
    usage,
    whole,
)

# Usage -------------------------------------------------------------------------------------------


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
        ({**USAGE, "prompt_tokens": 1e30}, Usage(0, 5), ["usage_estimated"]),
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
