"""Whatever order an upstream tells its calls in, clients get them one after the other and whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.errors import UpstreamError
from adapters.protocol import Event, Noted, ToolCallDelta, ToolCallStart
from adapters.shared.calls import MOST_CALLS, Calls, End, made_id


@dataclass
class Told:
    """One call as clients get it."""

    id: str
    name: str
    kind: str
    arguments: str = ""


def told(events: Sequence[Event]) -> list[Told]:
    """Join the events of an answer's calls, holding them to the promises."""
    calls: list[Told] = []
    for event in events:
        if isinstance(event, ToolCallStart):
            assert event.index == len(calls), "indexes count from 0 without gaps"
            calls.append(Told(event.id, event.name, event.kind))
        elif isinstance(event, ToolCallDelta):
            assert event.index == len(calls) - 1, "a delta belongs to the last call started"
            assert event.arguments, "no empty deltas"
            calls[-1].arguments += event.arguments
    ids = [call.id for call in calls]
    assert len(set(ids)) == len(ids), "ids are unique"
    return calls


def codes(events: Sequence[Event]) -> list[str]:
    return [note.code for event in events if isinstance(event, Noted) for note in event.receipt]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
OBJECTS = st.dictionaries(st.text(max_size=4), JSON, max_size=3).map(
    lambda value: json.dumps(value, ensure_ascii=False)
)
ARGUMENTS = OBJECTS | st.sampled_from(["", " ", "{}", '{"a": "}"}', '{"a":{"b":1}}  \n'])
BROKEN = st.sampled_from(['{"a":', "null", "[1]", "}", '"}"', "{'a':1}"])


@st.composite
def answers(
    draw: st.DrawFn, arguments: st.SearchStrategy[str] = ARGUMENTS
) -> tuple[list[str], list[tuple[int, str | None]]]:
    """Arguments of some calls, and steps: a call starts (None), or a piece of one comes."""
    texts = draw(st.lists(arguments, min_size=1, max_size=4))
    queues = []
    for text in texts:
        places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
        edges = [0, *places, len(text)]
        queues.append([text[start:end] for start, end in pairwise(edges)])
    steps: list[tuple[int, str | None]] = []
    begun = 0
    while begun < len(texts) or any(queues):
        ready = [number for number in range(begun) if queues[number]]
        if begun < len(texts) and (not ready or draw(st.booleans())):
            steps.append((begun, None))
            begun += 1
        else:
            number = draw(st.sampled_from(ready))
            steps.append((number, queues[number].pop(0)))
    return texts, steps


def play(calls: Calls, steps: Sequence[tuple[int, str | None]]) -> list[Event]:
    events: list[Event] = []
    for number, piece in steps:
        if piece is None:
            events += calls.start(number, f"id{number}", f"tool{number}")
        else:
            events += calls.delta(number, piece)
    return events + list(calls.close())


@given(answers())
def test_interleaved_calls_come_out_whole_and_in_order(
    answer: tuple[list[str], list[tuple[int, str | None]]],
) -> None:
    texts, steps = answer
    events = play(Calls("req"), steps)
    calls = told(events)
    assert [(call.id, call.name) for call in calls] == [
        (f"id{number}", f"tool{number}") for number in range(len(texts))
    ]
    for call, text in zip(calls, texts, strict=True):
        assert json.loads(call.arguments) == json.loads(text.strip() or "{}")
    assert codes(events) == []


@given(answers(ARGUMENTS | BROKEN))
def test_broken_arguments_come_out_verbatim_and_noted(
    answer: tuple[list[str], list[tuple[int, str | None]]],
) -> None:
    texts, steps = answer
    events = play(Calls("req"), steps)
    for call, text in zip(told(events), texts, strict=True):
        if not text.strip():
            assert json.loads(call.arguments) == {}
        elif codes(events).count("arguments_late") == 0:
            assert call.arguments.strip() == text.strip()
    broken = [text for text in texts if text.strip() and not _is_object(text)]
    assert bool(broken) == bool(codes(events))


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def test_pieces_of_the_call_that_is_open_leave_at_once() -> None:
    calls = Calls("req")
    for number in range(2):
        assert list(calls.start(number, None, "f"))[-1:] == [
            ToolCallStart(number, made_id("req", number), "f")
        ]
        for piece in ('{"a"', ":1", "}"):
            assert list(calls.delta(number, piece)) == [ToolCallDelta(number, piece)]


def test_a_second_call_waits_only_until_the_first_is_complete() -> None:
    calls = Calls("req")
    list(calls.start("a", "1", "f"))
    assert list(calls.start("b", "2", "g")) == []
    assert list(calls.delta("b", '{"b":')) == []
    assert list(calls.delta("a", "{}")) == [
        ToolCallDelta(0, "{}"),
        ToolCallStart(1, "2", "g"),
        ToolCallDelta(1, '{"b":'),
    ]
    assert list(calls.delta("b", "2}")) == [ToolCallDelta(1, "2}")]


def test_a_piece_after_the_end_of_its_call_is_noted_not_misplaced() -> None:
    calls = Calls("req")
    events = [
        *calls.whole("a", "1", "f", "{}"),
        *calls.whole("b", "2", "g", '{"b":2}'),
        *calls.delta("a", '{"a":1}'),
        *calls.close(),
    ]
    assert [call.arguments for call in told(events)] == ["{}", '{"b":2}']
    assert codes(events) == ["arguments_late"]


@pytest.mark.parametrize("identity", [None, "", "call_0"])
def test_missing_and_repeated_ids_are_made_from_the_request(identity: str | None) -> None:
    def ids(request_id: str) -> list[str]:
        calls = Calls(request_id)
        events = [
            event for key in range(3) for event in calls.whole(key, identity, "f", "{}")
        ]  # fmt: skip
        return [call.id for call in told(events)]

    assert ids("a") == ids("a")
    made = slice(1 if identity else 0, None)
    assert not set(ids("a")[made]) & set(ids("b")[made])
    assert all(identity.startswith("call_") and len(identity) == 29 for identity in ids("a")[made])


def test_no_parallel_calls_means_the_first_alone_and_a_note() -> None:
    calls = Calls("req", parallel=False)
    events = [
        *calls.start(0, "a", "f"),
        *calls.start(1, "b", "g"),
        *calls.delta(1, "{"),
        *calls.delta(0, '{"x":1}'),
        *calls.delta(1, "}"),
        *calls.whole(2, "c", "h", "{}"),
        *calls.close(),
    ]
    assert told(events) == [Told("a", "f", "function", '{"x":1}')]
    assert codes(events) == ["parallel_calls_dropped"]


@pytest.mark.parametrize(
    ("said", "wanted", "noted"),
    [
        ('{"input":"SELECT 1"}', "SELECT 1", []),
        ('{"input":""}', "", []),
        ("", "", ["custom_input_invalid"]),
        ('{"query":"x"}', '{"query":"x"}', ["custom_input_invalid"]),
        ('{"input":', '{"input":', ["custom_input_invalid"]),
    ],
)
def test_a_custom_tool_gets_its_text_back(said: str, wanted: str, noted: list[str]) -> None:
    calls = Calls("req", names={"sql_ab": "数据库"}, custom=frozenset({"sql_ab"}))
    events = [*calls.whole(0, "a", "sql_ab", said), *calls.close()]
    assert told(events) == [Told("a", "数据库", "custom", wanted)]
    assert codes(events) == noted


@given(answers())
def test_a_client_never_sees_the_name_an_upstream_knows(
    answer: tuple[list[str], list[tuple[int, str | None]]],
) -> None:
    texts, steps = answer
    calls = Calls("req", names={f"tool{number}": f"工具{number}" for number in range(4)})
    assert [call.name for call in told(play(calls, steps))] == [
        f"工具{number}" for number in range(len(texts))
    ]


@pytest.mark.parametrize("text", ['{}{"a":1}', '{} {"a":1}', '{}{}\n{"a":1}', ' { }{"a":1}'])
@pytest.mark.parametrize("custom", [(), ("f",)])
def test_behind_an_empty_object_the_real_arguments_are_meant(
    text: str, custom: Sequence[str]
) -> None:
    for size in (1, 2, 3, len(text)):
        calls = Calls("req", custom=frozenset(custom))
        text = text.replace('"a":1', '"input":"1"') if custom else text
        events = [*calls.start(0, "x", "f")]
        for at in range(0, len(text), size):
            events += calls.delta(0, text[at : at + size])
        events += calls.close()
        assert told(events)[0].arguments == ("1" if custom else '{"a":1}')
        assert set(codes(events)) == (set() if custom else {"empty_arguments_dropped"})


ODD = ["{}", "{}{}", "{ }", "{", "{}}", "{}[]", "", '{}{"a":', '{}{"a":1}{"a":1}']


@given(st.sampled_from(ODD), st.lists(st.integers(0, 16), max_size=4))
def test_arguments_are_the_same_whatever_their_cuts(text: str, places: list[int]) -> None:
    whole, cut = Calls("r"), Calls("r")
    edges = sorted({0, len(text), *(min(place, len(text)) for place in places)})
    steps = [(0, None), *((0, text[start:end]) for start, end in pairwise(edges))]
    events, others = play(cut, steps), play(whole, [(0, None), (0, text)])
    assert told(events) == told(others)
    assert set(codes(events)) == set(codes(others))


def test_an_object_behind_another_that_left_is_told_and_not_hidden() -> None:
    events = [*(calls := Calls("r")).whole(0, "x", "f", '{"a":1}{"b":2}'), *calls.close()]
    assert told(events)[0].arguments == '{"a":1}{"b":2}'
    assert codes(events) == ["arguments_invalid"]


def test_empty_arguments_of_calls_told_between_each_other() -> None:
    calls = Calls("r")
    events = [*calls.start("a", "1", "f"), *calls.start("b", "2", "g")]
    for key, piece in (("b", "{}"), ("b", '{"b":2}'), ("a", '{"a":1}')):
        events += calls.delta(key, piece)
    events += calls.close()
    assert [call.arguments for call in told(events)] == ['{"a":1}', '{"b":2}']
    assert codes(events) == ["empty_arguments_dropped"]


# What is asked with every piece -------------------------------------------------------------------


def is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


@given(st.lists(st.text('{}[]":,\\ a1\n', max_size=6), max_size=8) | st.lists(st.just("{}")))
@example(["{", '"a\\', '"}', '":1', "}", " "])
@example(['{"a":"}', '"}', "x"])
@example(["[{}]"])
@example(["}", "{}"])
def test_the_end_of_an_object_is_found_in_pieces_as_in_the_whole(pieces: list[str]) -> None:
    end, said = End(), list[str]()
    for piece in pieces:
        said.append(piece)
        assert end.seen(said) == is_object("".join(said))


def test_an_answer_has_no_more_calls_than_anybody_means() -> None:
    calls = Calls("req_1")
    for at in range(MOST_CALLS):
        list(calls.whole(at, None, "f", "{}"))
    with pytest.raises(UpstreamError, match="more than 1024 tool calls"):
        list(calls.start(MOST_CALLS, None, "f"))
