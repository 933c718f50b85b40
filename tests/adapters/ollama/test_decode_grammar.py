"""Calls by grammar and thoughts inside the text of Ollama's answers."""

from __future__ import annotations

import pytest

from adapters.ollama.decode import State
from adapters.protocol import (
    Event,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from adapters.shared.think_tags import TAGS, Splitter
from tests.adapters.ollama.answers import (
    CALLED,
    CITY,
    DONE,
    call,
    end,
    events_of,
    heard,
    joined,
    line,
    listener,
    notes_of,
    raw,
)

# Calls by grammar ------------------------------------------------------------------------------


def shaped(must_call: bool = True) -> State:
    return State(shaped=True, must_call=must_call, schemas={"weather": CITY})


def test_an_answer_shaped_as_a_call_becomes_one_in_any_pieces() -> None:
    text = ' {\n "name": "weather",\n "arguments": {"city": "沈阳", "n": 1.50} } '
    for size in range(1, len(text) + 1):
        pieces = [line(content=text[at : at + size]) for at in range(0, len(text), size)]
        found = events_of(line(thinking="hm"), *pieces, end(), state=shaped())
        assert [type(one) for one in found] == [
            ReasoningDelta,
            ToolCallStart,
            ToolCallDelta,
            Finish,
        ]
        assert found[2] == ToolCallDelta(0, '{"city": "沈阳", "n": 1.50}')
        assert found[3] == CALLED
    plain, _ = heard(raw(end(message={"content": text})), state=shaped(), streamed=False)
    assert joined(plain)[1:] == found[2:]


def test_a_shaped_call_that_was_cut_stays_as_far_as_it_came() -> None:
    lines = [line(content='{"name":"weather","arguments":{"city":"沈'), end("length")]
    found = events_of(*lines, state=shaped())
    assert found[1:] == [ToolCallDelta(0, '{"city":"沈'), Finish("length", Usage(9, 3), "length")]
    assert [note.code for note in notes_of(*lines, state=shaped())] == ["arguments_invalid"]


@pytest.mark.parametrize(
    "text",
    [
        "I will not.",
        '{"name":',
        '{"name":"other","arguments":{}}',
        '{"name":"weather","arguments":[]}',
        '{"name":"weather","arguments":{},"more":1}',
        '{"name":"weather","arguments":{}',
        '{"name":5,"arguments":{}}',
        '{"answer":1}',
        'x{"name":"weather","arguments":{}}',
    ],
)
@pytest.mark.parametrize("must_call", [True, False])
def test_other_text_stays_text_and_the_missing_call_is_told(text: str, must_call: bool) -> None:
    lines = [*(line(content=letter) for letter in text), end()]
    assert events_of(*lines, state=shaped(must_call)) == [TextDelta(text), DONE]
    told = [note.code for note in notes_of(*lines, state=shaped(must_call))]
    assert told == ["tool_choice_not_enforced"] * must_call


def test_text_that_can_no_longer_be_a_call_leaves_at_once() -> None:
    ear = listener(shaped(must_call=False))
    assert joined([*ear.feed(raw(line(content='{ "na')))]) == []
    assert joined([*ear.feed(raw(line(content='tion": 1')))]) == [TextDelta('{ "nation": 1')]
    assert joined([*ear.feed(raw(line(content="}")))]) == [TextDelta("}")]


@pytest.mark.parametrize("begins", ['{"name": "W', '{"name": "weather", "t', '{"name": 5'])
def test_an_answer_that_begins_with_a_name_leaves_when_no_tool_has_it(begins: str) -> None:
    ear = listener(shaped(must_call=False))
    assert joined([*ear.feed(raw(line(content='{"name": ')))]) == []
    rest = begins.removeprefix('{"name": ')
    assert joined([*ear.feed(raw(line(content=rest)))]) == [TextDelta(begins)]


def test_a_native_call_keeps_the_promise_as_well() -> None:
    lines = [line(tool_calls=[call(arguments={"city": "a"})]), end()]
    assert notes_of(*lines, state=shaped()) == []


def test_shaped_arguments_are_checked() -> None:
    lines = [line(content='{"name":"weather","arguments":{"city":5}}'), end()]
    assert [note.code for note in notes_of(*lines, state=shaped())] == ["arguments_mismatch"]


# Thoughts inside the text ----------------------------------------------------------------------


def test_a_tag_is_only_text_where_the_model_is_not_known_for_it() -> None:
    text = "<think>a</think>b"
    assert events_of(line(content=text), end()) == [TextDelta(text), DONE]


THOUGHTS: list[tuple[str, str, str]] = [
    ("<think>a b</think>c", "a b", "c"),
    ("\n <think>\na\n</think>\n\nc </think> <think>d", "\na\n", "c </think> <think>d"),
    ("plain <think>a</think>", "", "plain <think>a</think>"),
    ("<thinkers>a", "", "<thinkers>a"),
    ("<thinking>a</think></thinking>b", "a</think>", "b"),
    *((f"{opener}a b{closer}\nc", "a b", "c") for opener, closer in TAGS.items()),
    ("<thi", "", "<thi"),
    ("<think>never closed </thin", "never closed </thin", ""),
    ("<think></think>", "", ""),
    ("<think>a</think>  \n", "a", ""),
    ("  text", "", "  text"),
]


@pytest.mark.parametrize(("text", "thought", "answer"), THOUGHTS)
def test_a_thought_at_the_start_is_split_off_in_any_pieces(
    text: str, thought: str, answer: str
) -> None:
    expected: list[Event] = [ReasoningDelta(thought)] * bool(thought)
    expected += [TextDelta(answer)] * bool(answer)
    for size in range(1, len(text) + 1):
        pieces = [line(content=text[at : at + size]) for at in range(0, len(text), size)]
        found = events_of(*pieces, end(), state=State(thought=Splitter()))
        assert found == [*expected, DONE]
