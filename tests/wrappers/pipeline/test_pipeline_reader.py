"""A thought is told from an answer however it is marked, and wherever the stream is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.protocol import (
    Aside,
    Event,
    Finish,
    Noted,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallStart,
)
from adapters.shared.think_tags import TAGS
from middleware.wrappers.pipeline.reader import Thought
from middleware.wrappers.show import Manner, Show
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import OPENED, answer, request, user
from tests.support.fold import ask


def read(*batches: Sequence[Event]) -> Thought:
    thought = Thought()
    for batch in batches:
        thought.read(batch)
    return thought


def texts(*pieces: str) -> list[Sequence[Event]]:
    return [(TextDelta(piece),) for piece in pieces if piece]


@pytest.mark.parametrize(
    ("said", "thought", "answered"),
    [
        ("<think>\nwhy\n</think>\n\nanswer", "why", True),
        ("  \n<think>why</think>", "why", True),
        ("why\n</think>\nanswer", "why", True),
        ("just thinking aloud", "just thinking aloud", False),
        ("<think>never closed", "never closed", False),
        ("a < b and </b> and <think> inside", "a < b and </b> and <think> inside", False),
        ("<think></think>answer", "", True),
        ("ends like </thi", "ends like </thi", False),
        ("<thi", "<thi", False),
        *((f"{opener}why{closer}\nanswer", "why", True) for opener, closer in TAGS.items()),
        ("why </reasoning> answer", "why", True),
    ],
)
def test_every_cut_reads_the_same(said: str, thought: str, answered: bool) -> None:
    for size in (1, 2, 3, 7, len(said)):
        pieces = [said[at : at + size] for at in range(0, len(said), size)]
        found = read(*texts(*pieces), (Finish("stop"),))
        assert found.text() == thought
        assert found.answered is answered


@given(st.text(alphabet="<>/think \nab", max_size=40), st.integers(1, 9))
def test_no_cut_changes_a_thought(said: str, size: int) -> None:
    whole = read(*texts(said), (Finish("stop"),))
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    cut = read(*texts(*pieces), (Finish("stop"),))
    assert cut.text() == whole.text()
    assert cut.answered == whole.answered


def test_reasoning_apart_ends_where_text_begins() -> None:
    thinking: list[Sequence[Event]] = [
        (ReasoningDelta("a"),),
        (TextDelta(" \n"),),
        (ReasoningDelta("b"),),
    ]
    assert not read(*thinking).answered
    thought = read(*thinking, (TextDelta("answer"), ReasoningDelta("late")))
    assert thought.answered
    assert thought.text() == "ab"


@pytest.mark.parametrize("event", [ToolCallStart(0, "id", "f"), RefusalDelta("no")])
def test_a_call_or_a_refusal_ends_the_thought(event: Event) -> None:
    assert read((ReasoningDelta("a"),), (event,)).answered


def test_what_comes_with_the_answer_is_not_heard() -> None:
    """Else it would be chance: as a rule it comes later, and nobody is there any more."""
    assert read((ReasoningDelta("a"), TextDelta("b"), Finish("stop"))).finish is None
    assert read((ReasoningDelta("a"), Finish("stop"))).finish is not None


# How thoughts are shown ------------------------------------------------------------------------


def shown(manner: Manner, events: Sequence[Event]) -> list[Event]:
    return ask(Show(FakeAdapter(events), manner), request(user("hi")))


THINKING = [*answer("one", "")[:-1], ReasoningDelta("two"), TextDelta("answer"), Finish("stop")]


def test_thoughts_in_the_text_are_tagged() -> None:
    text = "".join(
        event.text for event in shown("think-tags", THINKING) if type(event) is TextDelta
    )
    assert text == "<think>\nonetwo\n</think>\n\nanswer"


def test_a_thought_without_an_answer_is_closed() -> None:
    events = shown("think-tags", answer("one"))
    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        "<think>\none",
        "\n</think>\n\n",
    ]


def test_thoughts_under_another_name() -> None:
    events = shown("reasoning", THINKING)
    assert [event for event in events if isinstance(event, Aside)] == [
        Aside("reasoning", "one"),
        Aside("reasoning", "two"),
    ]


def test_hidden_thoughts_open_nothing() -> None:
    events = shown("hidden", THINKING)
    assert events == [OPENED, TextDelta("answer"), Finish("stop")]


def test_what_is_noted_while_hidden_is_not_lost() -> None:
    note = Noted((("code", "field", "text"),))  # type: ignore[arg-type]  # a plain tuple will do
    opened = shown("hidden", [*THINKING[:2], note, *THINKING[2:]])[0]
    assert isinstance(opened, Opened)
    assert opened.receipt == note.receipt


@pytest.mark.parametrize("manner", [None, "think-tags"])
@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
def test_beside_json_thoughts_are_hidden_and_it_is_said(kind: str, manner: Manner | None) -> None:
    asked = replace(request(user("hi")), params={"response_format": {"type": kind}})
    opened, *rest = ask(Show(FakeAdapter(THINKING), manner), asked)
    assert rest == [TextDelta("answer"), Finish("stop")]
    assert isinstance(opened, Opened)
    assert [note.code for note in opened.receipt] == ["reasoning_hidden"]
    (opened, *_) = ask(Show(FakeAdapter(answer(text="no thought"))), asked)
    assert opened == OPENED
    assert ask(Show(FakeAdapter(THINKING), "reasoning_content"), asked) == THINKING


def test_elsewhere_no_layer_stands_between() -> None:
    model = FakeAdapter(THINKING)
    asked = replace(request(user("hi")), params={"response_format": {"type": "text"}})
    assert ask(Show(model), asked) == THINKING


def test_shown_as_they_are_nothing_changes() -> None:
    assert shown("reasoning_content", THINKING) == THINKING
