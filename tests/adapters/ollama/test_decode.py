"""Ollama's lines as events: text, thoughts, calls and why it stopped."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.ollama.decode import State
from adapters.protocol import (
    Finish,
    Json,
    Opened,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from adapters.shared.calls import Calls
from tests.adapters.ollama.answers import (
    CALLED,
    CITY,
    DONE,
    call,
    end,
    events_of,
    heard,
    line,
    notes_of,
    raw,
)


def test_text_and_thought_come_as_they_are() -> None:
    lines = [line(thinking="hm"), line(content="你"), line(content="好"), end()]
    assert events_of(*lines) == [ReasoningDelta("hm"), TextDelta("你好"), DONE]


def test_the_first_event_says_who_answers() -> None:
    events, _ = heard(raw(line(content="x"), end()))
    assert isinstance(events[0], Opened)
    assert events[0].upstream.model == "qwen3"


def test_an_end_without_figures_is_an_end() -> None:
    found = events_of(line(content="a"), line(done=True, content="b"))
    assert found == [TextDelta("ab"), Finish("stop", Usage(0, 0))]


def test_an_empty_answer_is_an_answer() -> None:
    assert events_of(end()) == [DONE]


@pytest.mark.parametrize("index", [0, 7])
def test_calls_of_several_lines_are_numbered_by_us(index: int) -> None:
    first = call(arguments={"city": "沈阳"}, id="call_a")
    second = call(arguments={"city": "b"}, id="call_b")
    second["function"]["index"] = index
    apart = events_of(line(tool_calls=[first]), line(tool_calls=[second]), end())
    together = events_of(line(tool_calls=[first, second]), end())
    assert apart == together
    assert apart == [
        ToolCallStart(0, "call_a", "weather"),
        ToolCallDelta(0, '{"city":"沈阳"}'),
        ToolCallStart(1, "call_b", "weather"),
        ToolCallDelta(1, '{"city":"b"}'),
        CALLED,
    ]


@pytest.mark.parametrize("identity", [{}, {"id": ""}, {"id": None}, {"id": 5}])
def test_a_call_without_an_id_gets_one_of_ours_the_same_each_time(identity: Json) -> None:
    lines = [line(tool_calls=[call(**identity), call(**identity)]), end()]
    starts = [one for one in events_of(*lines) if isinstance(one, ToolCallStart)]
    assert starts == [one for one in events_of(*lines) if isinstance(one, ToolCallStart)]
    assert len({one.id for one in starts}) == 2
    assert all(one.id.startswith("call_") for one in starts)


def test_an_id_used_twice_is_kept_once() -> None:
    lines = [line(tool_calls=[call(id="x"), call(id="x")]), end()]
    ids = [one.id for one in events_of(*lines) if isinstance(one, ToolCallStart)]
    assert ids[0] == "x"
    assert ids[1] != "x"


@pytest.mark.parametrize("identity", ["call_a", None])
@pytest.mark.parametrize("arguments", [None, {}, ""])
def test_a_call_without_arguments_says_so_and_keeps_its_id(
    arguments: Any, identity: str | None
) -> None:
    found = events_of(line(tool_calls=[call(arguments=arguments, id=identity)]), end())
    assert found[1] == ToolCallDelta(0, "{}")
    assert isinstance(found[0], ToolCallStart)
    assert found[0].id == (identity or found[0].id)


def test_text_beside_and_behind_a_call_stays_text() -> None:
    lines = [line(content="a", tool_calls=[call(id="x")]), line(content="b"), end()]
    assert [type(one) for one in events_of(*lines)] == [
        TextDelta,
        ToolCallStart,
        ToolCallDelta,
        TextDelta,
        Finish,
    ]


def test_only_the_first_call_passes_where_one_was_asked_for() -> None:
    state = State(calls=Calls("r", parallel=False), schemas={"weather": CITY})
    lines = [line(tool_calls=[call(arguments={"city": "a"}), call(arguments={})]), end()]
    found = events_of(*lines, state=state)
    assert [type(one) for one in found] == [ToolCallStart, ToolCallDelta, Finish]
    state = State(calls=Calls("r", parallel=False), schemas={"weather": CITY})
    assert [note.code for note in notes_of(*lines, state=state)] == ["parallel_calls_dropped"]


@pytest.mark.parametrize(
    ("reason", "calls", "finish", "told"),
    [
        ("stop", False, "stop", []),
        ("stop", True, "tool_calls", []),
        ("length", False, "length", []),
        ("length", True, "length", []),
        ("load", False, "stop", []),
        ("tool_calls", False, "stop", []),
        ("tool_calls", True, "tool_calls", []),
        ("unload", False, "stop", []),
        ("tired", False, "stop", ["finish_unknown"]),
        ("tired", True, "tool_calls", ["finish_unknown"]),
        ("", False, "stop", []),
    ],
)
def test_why_it_stopped(reason: str, calls: bool, finish: str, told: list[str]) -> None:
    lines = [*([line(tool_calls=[call()])] if calls else []), end(reason)]
    found = events_of(*lines)[-1]
    assert isinstance(found, Finish)
    assert (found.reason, found.native) == (finish, reason)
    assert [note.code for note in notes_of(*lines)] == told


@pytest.mark.parametrize(
    ("counts", "usage", "told"),
    [
        ({"prompt_eval_count": 9, "eval_count": 3}, Usage(9, 3), 0),
        ({"eval_count": 3}, Usage(0, 3), 1),
        ({"prompt_eval_count": "9"}, Usage(0, 0), 2),
    ],
)
def test_tokens_that_were_not_counted_are_not_guessed(
    counts: Json, usage: Usage, told: int
) -> None:
    last = {**line(done=True), "done_reason": "stop", **counts}
    assert events_of(last) == [Finish("stop", usage, "stop")]
    assert [note.code for note in notes_of(last)] == ["usage_estimated"] * told


@pytest.mark.parametrize(
    ("prompt", "completion", "told"), [(90, 5, False), (96, 1, True), (50, 50, True)]
)
def test_a_full_context_is_told(prompt: int, completion: int, told: bool) -> None:
    last = end(prompt_eval_count=prompt, eval_count=completion)
    found = [note.code for note in notes_of(last, state=State(window=100))]
    assert found == ["context_may_be_truncated"] * told


def test_log_probabilities_are_in_openais_words() -> None:
    top = {"token": "你", "logprob": -0.1}
    probable = {"token": "你", "logprob": -0.1, "bytes": [228], "top_logprobs": [top]}
    lines = [
        {**line(thinking="h"), "logprobs": [{"token": "h", "logprob": -1}]},
        {**line(content="你"), "logprobs": [probable]},
        {**line(content=""), "logprobs": [{"token": "!", "logprob": -2}]},
        end(),
    ]
    text = events_of(*lines)[1]
    entry = {"token": "你", "logprob": -0.1, "bytes": [228, 189, 160]}
    assert text == TextDelta("你", ({**entry, "bytes": [228], "top_logprobs": [entry]},))
    assert [note.code for note in notes_of(*lines)] == ["logprobs_dropped"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"city": "a"}, []),
        ({"city": 5}, ["arguments_mismatch"]),
        ({}, ["arguments_mismatch"]),
    ],
)
def test_arguments_are_checked_and_passed_on(arguments: Json, told: list[str]) -> None:
    lines = [line(tool_calls=[call(arguments=arguments)]), end()]
    state = State(schemas={"weather": CITY})
    assert [note.code for note in notes_of(*lines, state=state)] == told
    assert len(events_of(*lines, state=State(schemas={"weather": CITY}))) == 3


def test_a_tool_that_was_not_offered_is_told() -> None:
    lines = [line(tool_calls=[call("other", {})]), end()]
    assert [note.code for note in notes_of(*lines, state=State(schemas={"weather": CITY}))] == [
        "tool_unknown"
    ]


def test_arguments_that_came_as_text_stay_the_text() -> None:
    lines = [line(tool_calls=[call(arguments='{"n": 1.10}')]), end()]
    assert events_of(*lines)[1] == ToolCallDelta(0, '{"n": 1.10}')
