"""Ollama's errors, cuts and plain answers; no end without `done`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.errors import GatewayError, Truncated, UpstreamError
from adapters.ollama.decode import State
from adapters.protocol import (
    Finish,
    Json,
    Opened,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from tests.adapters.ollama.answers import DONE, call, end, events_of, heard, joined, line, raw

# Failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status", "more"),
    [
        ("model 'x' not found", 404, {}),
        ("x does not support tools", 400, {}),
        ("server busy, please try again", 503, {}),
        ("llama runner process has terminated", 500, {}),
        ("unauthorized", 502, {}),
        ("you have reached your hourly usage limit", 429, {}),
        ("anything", 429, {"status_code": 429}),
        ("anything", 503, {"status": 503}),
        ("anything", 500, {"status": "x"}),
    ],
)
@pytest.mark.parametrize("opened", [True, False])
def test_an_error_in_a_stream_has_its_status(
    words: str, status: int, more: Json, opened: bool
) -> None:
    first = [line(content="a")] if opened else []
    events, failure = heard(raw(*first, {"error": words, **more}, end()))
    assert failure is not None
    assert failure.status == status
    assert words in failure.message
    assert joined(events) == [TextDelta("a")] * opened


def test_a_plain_answer_that_is_an_error_is_one() -> None:
    _, failure = heard(raw({"error": "no"}), streamed=False)
    assert isinstance(failure, UpstreamError)


@pytest.mark.parametrize(
    "said",
    [
        b"<html>\n",
        b"[]\n",
        b"null\n",
        b"{}\n",
        raw({"done": True, "done_reason": "stop"}),
        raw({"message": "text", "done": True}),
        raw(line(tool_calls=[{"function": {}}])),
        raw(line(tool_calls=["x"])),
        raw(line(tool_calls=[{"function": {"name": 5}}])),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_what_is_no_answer_is_an_error(said: bytes, streamed: bool) -> None:
    events, failure = heard(said, streamed=streamed)
    assert isinstance(failure, UpstreamError)
    assert not any(isinstance(event, Finish) for event in events)


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("number", ["123456789012345678901234", "0.12345678901234567890", "1e400"])
def test_numbers_keep_their_digits(number: str, streamed: bool) -> None:
    calls = [call(arguments={"a": 0.5}), call(arguments={"n": [0.25, None]})]
    said = [line(tool_calls=calls), end()] if streamed else [line(done=True, tool_calls=calls)]
    schemas = {"weather": {"type": "object", "properties": {"n": {"type": "array"}}}}
    events, failure = heard(
        raw(*said).replace(b"0.25", number.encode()),
        state=State(schemas=schemas),
        streamed=streamed,
    )
    assert failure is None
    told = [event.arguments for event in events if isinstance(event, ToolCallDelta)]
    assert told == ['{"a":0.5}', f'{{"n":[{number},null]}}']


def test_arguments_too_deep_to_be_written_are_an_error() -> None:
    deep: Any = {}
    for _ in range(300):
        deep = {"a": deep}
    _, failure = heard(raw(line(tool_calls=[call(arguments=deep)]), end()))
    assert isinstance(failure, UpstreamError)


def test_a_stray_object_between_the_lines_is_skipped() -> None:
    assert events_of(line(content="a"), {"status": "x"}, line(content="b"), end()) == [
        TextDelta("ab"),
        DONE,
    ]


def test_what_stands_behind_the_end_is_not_read() -> None:
    assert events_of(line(content="a"), end(), line(content="b"), end()) == [TextDelta("a"), DONE]


@pytest.mark.parametrize("message", [{"content": None, "thinking": []}, {"thinking": 5}, {}])
def test_odd_members_of_a_message_are_nothing(message: Json) -> None:
    odd = {**line(), "message": message}
    assert events_of(odd, end()) == [DONE]


@pytest.mark.parametrize("message", [{"content": 5}, {"tool_calls": True}, {"tool_calls": "f"}, 5])
def test_what_may_have_been_text_or_a_call_is_never_left_out(message: Any) -> None:
    _, failure = heard(raw(line(content="a"), {**line(), "message": message}, end()))
    assert isinstance(failure, UpstreamError)


# Cuts ------------------------------------------------------------------------------------------


LONG = (
    line(thinking="想"),
    line(content="沈"),
    line(content="", tool_calls=[call(arguments={"city": "阳"}, id="call_a")]),
    line(content="!", tool_calls=[call(id="call_b")]),
    end(),
)


def test_every_cut_of_the_bytes_gives_the_same_events() -> None:
    whole = raw(*LONG)
    expected, _ = heard(whole)
    for at in range(len(whole) + 1):
        events, failure = heard(whole[:at], whole[at:])
        assert failure is None
        assert joined(events) == joined(expected)
    singly, _ = heard(*(whole[at : at + 1] for at in range(len(whole))))
    assert joined(singly) == joined(expected)


def test_every_truncation_is_an_error_and_never_an_end() -> None:
    whole = raw(*LONG).rstrip()
    for at in range(len(whole)):
        events, failure = heard(whole[:at])
        assert isinstance(failure, Truncated)
        assert not any(isinstance(event, Finish) for event in events)


def test_the_last_line_needs_no_line_break() -> None:
    events, failure = heard(raw(*LONG).rstrip())
    assert failure is None
    assert joined(events) == events_of(*LONG)


# Plain answers ---------------------------------------------------------------------------------


def test_a_plain_answer_says_the_same_as_a_stream() -> None:
    calls = [call(arguments={"city": "a"}, id="call_a"), call(id="call_b")]
    whole = end(message={"content": "text", "thinking": "hm", "tool_calls": calls})
    plain, _ = heard(raw(whole), streamed=False)
    apart = [line(thinking="hm"), line(content="te"), line(content="xt", tool_calls=calls), end()]
    assert joined(plain) == events_of(*apart)


def test_a_plain_answer_may_leave_done_out_but_not_deny_it() -> None:
    whole = end(message={"content": "text"})
    del whole["done"]
    events, failure = heard(raw(whole), streamed=False)
    assert (joined(events), failure) == ([TextDelta("text"), DONE], None)
    _, failure = heard(raw(line(content="text")), streamed=False)
    assert isinstance(failure, Truncated)


# Laws ------------------------------------------------------------------------------------------


LINES = st.lists(
    st.one_of(
        st.builds(lambda text: line(content=text), st.text(max_size=5)),
        st.builds(lambda text: line(thinking=text), st.text(max_size=5)),
        st.builds(
            lambda names: line(tool_calls=[call(name, {"a": name}) for name in names]),
            st.lists(st.sampled_from(["a", "b"]), max_size=3),
        ),
    ),
    max_size=8,
)


@settings(max_examples=80, deadline=None)
@given(LINES, st.sampled_from(["stop", "length", "load"]), st.data())
def test_the_promises_hold_for_any_lines_and_any_cuts(
    lines: list[Json], reason: str, data: st.DataObject
) -> None:
    whole = raw(*lines, end(reason))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True) if a < b]
    events, failure = heard(*pieces)
    assert failure is None
    assert joined(events) == events_of(*lines, end(reason))
    assert [type(one) for one in events].count(Opened) == 1
    assert isinstance(events[0], Opened)
    assert isinstance(events[-1], Finish)
    starts = [one.index for one in events if isinstance(one, ToolCallStart)]
    assert starts == list(range(len(starts)))
    assert all(one.text for one in events if isinstance(one, TextDelta | ReasoningDelta))
    if reason == "stop" and starts:
        assert events[-1].reason == "tool_calls"


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["message", "content", "tool_calls", "function", "name", "done", "error"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=10,
    )
)
def test_whatever_the_server_sends_is_read_or_is_its_error(said: Any) -> None:
    for streamed in (True, False):
        events, failure = heard(raw(said), streamed=streamed)
        ended = any(isinstance(event, Finish) for event in events)
        assert ended != isinstance(failure, GatewayError)
