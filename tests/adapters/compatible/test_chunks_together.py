"""Chunks that come at once say the same as chunks that come one by one."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.compatible.completions import close, decode, decode_answer
from adapters.compatible.state import State
from adapters.protocol import (
    Json,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from adapters.shared.calls import Calls
from adapters.wire.exchange import Exchange
from adapters.wire.framing import Sse
from tests.adapters.together import Heard, heard_of, listener_of
from tests.support.cuts import cut, cuts

DONE = b"data: [DONE]\n\n"


def exchange_of(state: State) -> Exchange[State]:
    return Exchange("", {}, (), state, True, Sse, decode, close, decode_answer)


def listen(*pieces: bytes) -> Heard:
    return heard_of(exchange_of(State(Calls("req_1", custom=frozenset({"free"})))), *pieces)


def one_by_one(data: bytes) -> Heard:
    return listen(*[frame + b"\n\n" for frame in data.split(b"\n\n")[:-1]])


def chunk(delta: Json, reason: str | None = None, **more: Any) -> Json:
    return {
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        **more,
    }


def piece(arguments: Any, place: int | None = 0, **more: Any) -> Json:
    said: Json = {"function": {"arguments": arguments, **more}}
    return chunk({"tool_calls": [said if place is None else {"index": place, **said}]})


def sse(*chunks: Json) -> bytes:
    """As written with and without spaces: servers do both."""
    dumps = json.dumps if len(chunks) % 2 else lambda one: orjson.dumps(one).decode()
    return b"".join(b"data: %b\n\n" % dumps(one).encode() for one in chunks)


def called(words: list[str], place: int, name: str) -> list[Json]:
    begun = {"index": place, "id": f"call_{place}", "function": {"name": name, "arguments": ""}}
    return [chunk({"tool_calls": [begun]}), *[piece(word, place) for word in words]]


WORDS = st.lists(
    st.sampled_from(["a", "", "{", "}", '{"a":', '"b"}', "沈", '\\"', "\n", "{}"]), max_size=9
)
RUNS = st.one_of(
    WORDS.map(lambda words: [chunk({"content": word}) for word in words]),
    WORDS.map(lambda words: [chunk({"content": word, "refusal": None}) for word in words]),
    WORDS.map(lambda words: [chunk({"reasoning_content": word}) for word in words]),
    WORDS.map(lambda words: [chunk({"reasoning": word, "content": ""}) for word in words]),
    WORDS.map(lambda words: [chunk({"content": word}, obfuscation=word) for word in words]),
    WORDS.map(lambda words: called(words, 0, "get_weather")),
    WORDS.map(lambda words: called(words, 1, "free")),
    WORDS.map(lambda words: [piece(word, None) for word in words]),
    WORDS.map(lambda words: [piece(word, name="again") for word in words]),
)
ODD = st.sampled_from(
    [
        chunk({}),
        chunk({"content": None}),
        chunk({"content": 7}),
        chunk({"content": "b"}, logprobs=None),
        chunk({"content": "c", "role": "assistant"}),
        chunk({"content": "d", "reasoning": "d"}),
        chunk({"content": "e"}, usage={"prompt_tokens": 1, "completion_tokens": 2}),
        chunk({"content": "f"}, "stop"),
        {"choices": [{"index": 1, "delta": {"content": "other"}}]},
        {"choices": [{"delta": {"content": ""}, "logprobs": {"content": [{"token": "g"}]}}]},
        {"choices": [{"message": {"content": "h"}}]},
        piece({"i": 1}),
        piece("j", 1),
        piece("k", 0, name="get_weather"),
        {"error": {"message": "busy", "code": 503}},
        {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
    ]
)


@given(
    runs=st.lists(RUNS, max_size=5),
    odd=st.lists(st.tuples(st.integers(0, 40), ODD), max_size=3),
    places=cuts(3),
)
def test_chunks_that_come_together_say_what_they_say_alone(
    runs: list[list[Json]], odd: list[tuple[int, Json]], places: list[int]
) -> None:
    chunks = [chunk({"role": "assistant", "content": ""}), *[one for run in runs for one in run]]
    for place, one in odd:
        chunks.insert(place, one)
    data = sse(*chunks, chunk({}, "stop")) + DONE
    alone = one_by_one(data)
    assert listen(data) == alone
    assert listen(*filter(None, cut(data, places))) == alone


def test_each_text_stays_an_event_of_its_own() -> None:
    words = [str(at) for at in range(50)]
    said, *_ = listen(
        sse(
            *[chunk({"reasoning_content": word}) for word in words],
            *[chunk({"content": word}) for word in words],
            *called(['{"a":', *words], 0, "f"),
        )
    )
    assert [event.text for event in said if isinstance(event, ReasoningDelta)] == words
    assert [event.text for event in said if isinstance(event, TextDelta)] == words
    pieces = [event.arguments for event in said if isinstance(event, ToolCallDelta)]
    assert pieces == ['{"a":', *words]


def test_pieces_with_a_name_may_begin_another_call() -> None:
    words = ['{"a":', "1", "}", '{"a":', "2", "}"]
    data = sse(*[piece(word, name="f") for word in words], chunk({}, "tool_calls")) + DONE
    assert listen(data) == one_by_one(data)
    assert sum(isinstance(event, ToolCallStart) for event in listen(data)[0]) == 2


@pytest.mark.parametrize("alike", [True, False])
def test_what_varies_is_not_guessed_at_for_ever(alike: bool) -> None:
    state = State(Calls("req_1"))
    listener = listener_of(exchange_of(state))
    at = 0
    for _ in range(9):
        frames = [chunk({"content": "a"}, created=0 if alike else at + i) for i in range(9)]
        at += len(frames)
        listener.feed(sse(*frames))
    assert (state.guesses > 0) is alike


def test_one_that_comes_alone_is_not_looked_at_for_others() -> None:
    state = State(Calls("req_1"))
    listener = listener_of(exchange_of(state))
    for word in "abcdefgh":
        listener.feed(sse(chunk({"content": word})))
    assert state.alike is None
