"""What a client gets does not depend on how the answer was cut, and most of it is not touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from adapters.protocol import (
    TURN,
    Aside,
    Event,
    Finish,
    Json,
    Noted,
    Opened,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from adapters.receipts import Note
from tests.support.adapters import FakeAdapter, Script
from tests.support.fold import Answer
from tests.support.tools import FakeShelf, declared
from tests.wrappers.server_tools.rounds import (
    CLIENT_TOOL,
    OPENED,
    answer,
    asked,
    calling,
    saying,
    wrapped,
)

Batch = tuple[Event, ...]
THOUGHTS = Aside("thinking_blocks", [{"type": "thinking", "thinking": "hm", "signature": "s"}])
CITED = Aside("annotations", [{"type": "url_citation"}])
END = Finish("stop", Usage(1, 2))
CLIENT_CALL = (ToolCallStart(0, "c1", "mine"), ToolCallDelta(0, "{}"))
MIXED: Batch = (
    Opened((Note("temperature_clamped", "temperature", "lowered"),), OPENED.upstream),
    ReasoningDelta("Let me "),
    ReasoningDelta("see."),
    TextDelta("One "),
    TextDelta("moment."),
    ToolCallStart(0, "c1", "mine"),
    ToolCallDelta(0, '{"x"'),
    ToolCallDelta(0, ": 7}"),
    ToolCallStart(1, "c2", "now"),
    ToolCallDelta(1, "{}"),
    Noted((Note("refusal", "", "no"),)),
    ToolCallStart(2, "c3", "mine"),
    ToolCallDelta(2, "{}"),
    THOUGHTS,
    Finish("tool_calls", Usage(10, 1)),
)


def heard(*batches: Batch, thinks: bool | None = None) -> Answer:
    shelf = FakeShelf(w__now="sunny")
    adapter = wrapped(FakeAdapter(batches, saying("It is sunny.")), shelf, thinks=thinks)
    return answer(adapter, asked(tools=(CLIENT_TOOL,)))


def cuts_of(events: Batch) -> Iterator[Sequence[Batch]]:
    """All at once, one by one, cut once or twice anywhere."""
    yield [events]
    yield [(event,) for event in events]
    for first in range(1, len(events)):
        for second in range(first + 1, len(events) + 1):
            edges = [0, first, second, len(events)]
            yield [events[start:end] for start, end in pairwise(edges) if start < end]


def flat(got: Answer) -> list[Event]:
    return [event for batch in got.batches for event in batch]


def test_where_a_mixed_turn_is_cut_changes_nothing() -> None:
    whole = heard(MIXED)
    assert whole.calls == [
        ("c1", "mine", "function", '{"x": 7}'),
        ("c3", "mine", "function", "{}"),
    ]
    assert (whole.text, whole.reasoning, whole.asides) == ("One moment.", "Let me see.", [])
    assert whole.notes == ["temperature_clamped", "refusal"]
    assert all(flat(heard(*cut)) == flat(whole) for cut in cuts_of(MIXED))


def test_where_an_answer_without_tools_is_cut_changes_nothing() -> None:
    second = (ToolCallStart(1, "c2", "mine"), ToolCallDelta(1, "{}"))
    end = Finish("tool_calls", Usage(1, 2))
    events = (*MIXED[:8], *second, MIXED[10], CITED, THOUGHTS, end)
    whole = [event for event in events if event is not THOUGHTS]
    assert all(flat(heard(*cut)) == whole for cut in cuts_of(events))


PASSING: tuple[Batch, ...] = (
    (OPENED, TextDelta("a")),
    (TextDelta("b"),),
    (TextDelta("c", ({"token": "c"},)), TextDelta("d")),
    (ReasoningDelta("e"),),
    CLIENT_CALL,
    (ToolCallDelta(0, " "),),
    (CITED,),
    (TextDelta("f"), END),
)


def test_batches_without_calls_of_server_tools_are_handed_on_as_they_are() -> None:
    got = heard(*PASSING)
    assert len(got.batches) == len(PASSING)
    assert all(told is sent for told, sent in zip(got.batches, PASSING, strict=True))


def test_what_the_gateway_has_to_say_is_said_where_the_answer_opens() -> None:
    model = FakeAdapter(((OPENED, TextDelta("a"), END),))
    shelf = FakeShelf(w__now="x", w__other="y")
    got = answer(wrapped(model, shelf), asked(tools=(declared("now"),)))
    assert [type(event) for event in flat(got)] == [Opened, TextDelta, Finish]
    assert (len(got.batches), got.notes) == (1, ["tool_shadowed"])


@pytest.mark.parametrize("cut", [*range(1, 4)])
@pytest.mark.parametrize("remembers", [True, False])
def test_thoughts_for_the_way_back_are_told_where_nobody_keeps_them(
    remembers: bool, cut: int
) -> None:
    events = (OPENED, TextDelta("a"), THOUGHTS, END)
    got = heard(events[:cut], events[cut:], thinks=None if remembers else True)
    told = [] if remembers else [("thinking_blocks", THOUGHTS.value)]
    assert (got.asides, got.text, got.reason) == (told, "a", "stop")


@pytest.mark.parametrize("remembers", [True, False])
def test_beside_hidden_rounds_they_are_nobody_s(remembers: bool) -> None:
    first = (*calling(("c1", "now", "{}"))[:-1], THOUGHTS, Finish("tool_calls"))
    last: Script = (OPENED, TextDelta("It is sunny."), THOUGHTS, END)
    adapter = wrapped(
        FakeAdapter(first, last), FakeShelf(w__now="x"), thinks=None if remembers else True
    )
    got = answer(adapter)
    assert (got.asides, got.text) == ([], "It is sunny.")


@pytest.mark.parametrize("thinks", [None, False, True])
def test_thoughts_of_a_round_go_up_with_the_next_where_nobody_else_puts_them_back(
    thinks: bool | None,
) -> None:
    own: Json = {"role": "assistant", "content": [{"type": "thinking"}]}
    call = calling(("c1", "now", "{}"))
    spoken = (call[0], ReasoningDelta("hm"), *call[1:])
    signed = (*spoken[:-1], Finish("tool_calls", turn=own))
    model = FakeAdapter(spoken, signed, saying("End"))
    answer(wrapped(model, FakeShelf(w__now="x"), thinks=thinks))
    first, second = model.last()[1::2]
    assert first.get("reasoning_content") == ("hm" if thinks else None)
    assert second.get(TURN) == (own if thinks else None)


def test_thoughts_are_told_once_whatever_comes_behind_them() -> None:
    noted = Noted((Note("refusal", "", "no"),))
    got = heard((OPENED, TextDelta("a")), (THOUGHTS,), (noted,), (END,), thinks=True)
    assert (got.asides, got.notes) == ([("thinking_blocks", THOUGHTS.value)], ["refusal"])
