"""Values of now in recorded answers: whole tokens, cut pieces, JSON; everything else as it was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.protocol import (
    Event,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from middleware.cassettes.match import carry_into
from tests.linear.measuring import require_linear
from tests.support.fold import folded

Batches = Sequence[tuple[Event, ...]]
CALL = (ToolCallStart(0, "a", "buy"),)
# Value of the recording, value of now, an answer, and what becomes of it.
TOKENS: Sequence[tuple[str, str, str, str]] = (
    ("T-1", "T-77", "T-1, T-12, XT-1, T-1.", "T-77, T-12, XT-1, T-77."),
    ("T-1", "T-77", "(T-1) 'T-1' T-1: T-1-2 T-1.5", "(T-77) 'T-77' T-77: T-1-2 T-1.5"),
    ("T-1", "T-77", "订单T-1已发货", "订单T-77已发货"),
    ("7", "8", "7 lamps, 17, 7.5, 1.7, 1-7, v7, 7", "8 lamps, 17, 7.5, 1.7, 1-7, v7, 8"),
    ("08:30", "21:05", "08:30 or 08:30:12", "21:05 or 08:30:12"),
    ("/tmp/a", "/tmp/b", "in /tmp/a/x, not /tmp/ab", "in /tmp/b/x, not /tmp/ab"),
    ("a.b", "c", "a.b axb", "c axb"),
    ("x", r"\1\g<0>", "x", r"\1\g<0>"),
    ("gone", "", "it is gone now", "it is  now"),
)


def texts(*pieces: str) -> Batches:
    return [(TextDelta(piece),) for piece in pieces]


def arguments(*pieces: str) -> Batches:
    return [CALL, *((ToolCallDelta(0, piece),) for piece in pieces)]


def pieces_of(batches: Batches) -> list[str]:
    return [
        event.arguments if isinstance(event, ToolCallDelta) else event.text
        for batch in batches
        for event in batch
        if isinstance(event, TextDelta | ReasoningDelta | ToolCallDelta)
    ]


@pytest.mark.parametrize(("old", "new", "said", "becomes"), TOKENS)
def test_whole_tokens(old: str, new: str, said: str, becomes: str) -> None:
    batches, made = carry_into(texts(said), [(old, new)])
    assert pieces_of(batches) == [becomes]
    assert made == (("content", old, new),)


@pytest.mark.parametrize(
    ("pieces", "becomes"),
    [
        (("ID T-", "1", " ok"), ["ID X-9", "", " ok"]),
        (("T", "-", "1"), ["X-9", "", ""]),
        (("T-1", "2"), ["T-1", "2"]),
        (("X", "T-1"), ["X", "T-1"]),
        (("T-1 T-", "1 T-1"), ["X-9 X-9", " X-9"]),
        (("", "T-1", ""), ["", "X-9", ""]),
    ],
)
def test_a_cut_value_is_put_where_it_began(pieces: tuple[str, ...], becomes: list[str]) -> None:
    assert pieces_of(carry_into(texts(*pieces), [("T-1", "X-9")])[0]) == becomes


@pytest.mark.parametrize(
    ("old", "new", "pieces", "becomes"),
    [
        ("T-1", 'a"b\\', ('{"id":"T-1"}',), ['{"id":"a\\"b\\\\"}']),
        ("T-1", "灯", ('{"id":"x\\nT-', '1"}'), ['{"id":"x\\n灯', '"}']),
        ("灯", "L", ('{"id":"\\u7', '06f"}'), ['{"id":"L', '"}']),
        ("😀", "L", ('{"id":"\\ud83d\\ude00"}',), ['{"id":"L"}']),
        ('a"b', "c", ('{"id":"a\\"b"}',), ['{"id":"c"}']),
        ("7", "8", ('{"n":7,"m":[7]}',), ['{"n":8,"m":[8]}']),
        ("T-1", "X", ('{"id":"\\uT-1',), ['{"id":"\\uT-1']),
    ],
)
def test_arguments_are_json(
    old: str, new: str, pieces: tuple[str, ...], becomes: list[str]
) -> None:
    assert pieces_of(carry_into(arguments(*pieces), [(old, new)])[0]) == becomes


def test_everything_said_is_reached_and_nothing_else_changes() -> None:
    batches: Batches = [
        (ReasoningDelta("T-1?"), TextDelta("T-1", ({"token": "T-1"},)), TextDelta(" same")),
        (*CALL, ToolCallDelta(0, '{"id":')),
        (ToolCallDelta(0, '"T-1"}'), ToolCallStart(1, "b", "T-1"), ToolCallDelta(1, '["T-1"]')),
        (Finish("tool_calls"),),
    ]
    done, made = carry_into(batches, [("T-1", "T-2"), ("T-1", "T-3"), ("Z", "Y")])
    assert [*map(len, done)] == [*map(len, batches)]
    assert done[0][1] == TextDelta("T-2", ({"token": "T-1"},))
    assert done[0][2] is batches[0][2]
    assert done[3] == batches[3]
    assert folded(event for batch in done for event in batch).calls[1][1:] == (
        *("T-1", "function", '["T-2"]'),
    )
    assert [one.path for one in made] == [
        *("reasoning_content", "content"),
        *("tool_calls[0].function.arguments", "tool_calls[1].function.arguments"),
    ]
    assert {(one.recorded, one.now) for one in made} == {("T-1", "T-2")}


def test_values_are_put_in_at_once() -> None:
    """What was put in is not replaced again."""
    swapped = carry_into(texts("A-1 B-2 A-12"), [("A-1", "B-2"), ("B-2", "A-1"), ("A-12", "C")])
    assert pieces_of(swapped[0]) == ["B-2 A-1 C"]
    assert len(swapped[1]) == 3


def test_of_two_values_the_longer_counts() -> None:
    longer = carry_into(texts("T-1 b, T-1 c"), [("T-1", "x"), ("T-1 b", "y")])
    assert pieces_of(longer[0]) == ["y, x c"]


def test_without_values_nothing_is_made() -> None:
    batches = texts("T-1")
    assert carry_into(batches, ()) == (tuple(batches), ())
    assert carry_into(batches, [("T-2", "x")]) == (tuple(batches), ())


@given(
    words=st.lists(
        st.sampled_from(["ID-5", "ID-55", "灯", 'a"', "\\", "\n", "x", " "]), max_size=12
    ),
    cuts=st.lists(st.integers(0, 80), max_size=5),
    ascii_only=st.booleans(),
)
def test_any_cut_gives_the_same_answer(words: list[str], cuts: list[int], ascii_only: bool) -> None:
    said: Any = {"k": "".join(words)}
    text = json.dumps(said, ensure_ascii=ascii_only)
    ends = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(ends)]
    values = [("ID-5", 'new"\\'), ("灯", "L")]
    whole, _ = carry_into(arguments(text), values)
    cut, _ = carry_into(arguments(*pieces), values)
    assert "".join(pieces_of(cut)) == "".join(pieces_of(whole))
    assert len(pieces_of(cut)) == len(pieces)
    becomes, _ = carry_into(texts(said["k"]), values)
    assert json.loads("".join(pieces_of(cut))) == {"k": "".join(pieces_of(becomes))}


def test_the_time_is_that_of_the_text() -> None:
    values = [(f"ID-{n}", f"NEW-{n}") for n in range(300)]

    def grow(size: int) -> Batches:
        return arguments(*(f'"\\n ID-{n % 300}' for n in range(size // 12)))

    require_linear(lambda batches: carry_into(batches, values), grow, 120_000)
