"""Texts that come together are read as those that come one by one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.protocol import (
    Event,
    Finish,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
    Usage,
)
from middleware.wrappers.base import Wrapper
from middleware.wrappers.emulation.emulated import EmulatedTools
from middleware.wrappers.emulation.rescue import LeakRescue
from tests.support.adapters import FakeAdapter
from tests.support.text_only import OSLO, asked, heard

WORDS = (
    OSLO,
    *"aA `{}[]<\n",
    "``",
    "word ",
    "沈",
    "",
    "Action: ",
    '{"city":',
    "<tool_call>",
    "\n\n",
)
SAID: st.SearchStrategy[Event] = st.one_of(
    st.sampled_from(WORDS).map(TextDelta),
    st.sampled_from(WORDS).map(lambda word: TextDelta(word, ({"token": word},))),
    st.sampled_from([ReasoningDelta("hm"), RefusalDelta("no")]),
)
WRAPPERS = (EmulatedTools, LeakRescue)


def said(wrapper: type[Wrapper], batches: Sequence[tuple[Event, ...]]) -> list[Event]:
    heard_all = heard(wrapper(FakeAdapter(usual=batches)), asked())
    return [event for batch in heard_all.batches for event in batch]


def joined(events: Sequence[Event]) -> list[Event]:
    """With texts that follow each other as one."""
    told: list[Event] = []
    for event in events:
        if told and isinstance(event, TextDelta) and isinstance(before := told[-1], TextDelta):
            told[-1] = TextDelta(before.text + event.text)
        else:
            told.append(event)
    return told


def answer(*events: Event) -> tuple[Event, ...]:
    return (Opened((), Upstream("toy")), *events, Finish("stop", Usage(10, 5)))


def call(index: int) -> tuple[Event, ...]:
    pieces = ('{"city":', '"Oslo"', "}")
    start = ToolCallStart(index, f"call_{index}", "get_weather")
    return (start, *[ToolCallDelta(index, piece) for piece in pieces])


PLAIN = st.sampled_from(("a", "b ", "`", "", "\n", "{")).map(TextDelta)
PARTS = st.tuples(
    st.lists(SAID, max_size=6),
    st.lists(PLAIN, max_size=40),
    st.lists(SAID, max_size=30),
    st.integers(0, 2).map(lambda calls: [event for at in range(calls) for event in call(at)]),
    st.lists(SAID, max_size=6),
)


@pytest.mark.parametrize("wrapper", WRAPPERS)
@given(first=st.just(TextDelta("So. ")) | SAID, parts=PARTS, cut=st.integers(1, 60))
@example(TextDelta("a\n"), ([ReasoningDelta("hm")], [], [], [], []), 1)
def test_a_burst_says_what_its_pieces_say(
    wrapper: type[Wrapper], first: Event, parts: tuple[list[Event], ...], cut: int
) -> None:
    events = answer(first, *[event for part in parts for event in part])
    alone = said(wrapper, [events[:2], *[(event,) for event in events[2:]]])
    assert joined(said(wrapper, [events])) == joined(alone)
    assert (
        said(wrapper, [events[:2], *filter(None, (events[2:cut], events[max(cut, 2) :]))]) == alone
    )


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_text_that_is_refused_behind_it_keeps_its_place(cut: int) -> None:
    events = answer(TextDelta("I would\n"), RefusalDelta("no"))
    heard_all = said(LeakRescue, [events[:cut], events[cut:]])
    assert joined(heard_all)[1:3] == [TextDelta("I would\n"), RefusalDelta("no")]


HARMLESS = (
    "a",
    " ",
    "\n",
    "`",
    "```",
    "> ",
    "- ",
    "1. ",
    ":",
    "get_weather",
    "city",
    "Action",
    "USE",
    "NO",
    "_",
    "REASON:",
    "ARGS:",
    "Observation:",
    "functions.",
    "to",
    "}",
    "]",
    '"',
    "参数",
    "Input",
    ",",
)


@given(words=st.lists(st.sampled_from(HARMLESS), min_size=1, max_size=30))
def test_an_answer_that_is_not_read_would_say_the_same(words: list[str]) -> None:
    text = "".join(words)
    whole, read = (
        said(LeakRescue, batches)
        for batches in (
            [answer(TextDelta(text))],
            [
                (Opened((), Upstream("toy")), ReasoningDelta("hm")),
                *[(one,) for one in answer(TextDelta(text))[1:]],
            ],
        )
    )
    told = [[one.text for one in events if isinstance(one, TextDelta)] for events in (whole, read)]
    assert "".join(told[0]) == "".join(told[1]) == text


def test_a_call_behind_a_hundred_words_is_found() -> None:
    words = [*["word "] * 100, "\n", *OSLO]
    events = said(EmulatedTools, [answer(*map(TextDelta, words))])
    told = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(told).split() == ["word"] * 100
    assert len(told) > 80
    last = events[-1]
    assert isinstance(last, Finish)
    assert last.reason == "tool_calls"


def test_log_probabilities_that_were_asked_for_stay_with_the_text() -> None:
    words = [TextDelta("a", ({"token": "a"},)), TextDelta("b\n", ({"token": "b"},))]
    model = FakeAdapter([answer(*words)])
    batches = heard(LeakRescue(model), asked(params={"logprobs": True})).batches
    assert [event for batch in batches for event in batch if isinstance(event, TextDelta)] == words
