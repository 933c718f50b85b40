"""Retry around emulation and recall: what began is not asked for again, what follows it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from adapters.compatible import KIND as COMPATIBLE
from adapters.errors import BadRequest, Unavailable
from adapters.protocol import (
    Adapter,
    ChatRequest,
    Event,
    Finish,
    Noted,
    Planned,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from adapters.receipts import Note
from middleware.wrappers.emulation import ToolSettings, with_tools
from middleware.wrappers.emulation.rescue import LeakRescue
from middleware.wrappers.recall import MemoryStore, Recall
from middleware.wrappers.recall.store import Entry
from middleware.wrappers.retry import Budget, Retry
from middleware.wrappers.strict import Strict
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import OPENED, answer, request, user
from tests.support.fold import ask

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
QUESTION = replace(request(user("Oslo?")), tools=(TOOL,))
FORCED = replace(QUESTION, tool_choice="required")
CALL = 'USE_TOOL\nTOOL_NAME: weather\nTOOL_ARGS: {"city": "Oslo"}'
FAULTY = 'USE_TOOL\nTOOL_NAME: weather\nTOOL_ARGS: {"town": 5}'
Answer = Sequence[Event | Exception]


def away() -> Unavailable:
    return Unavailable("away")


def broken(text: str) -> Answer:
    """It began, and broke off."""
    return [OPENED, TextDelta(text), away()]


class Nest:
    """A model with emulated tools, nested as a config nests it."""

    def __init__(self, *answers: Answer, decide: bool = False) -> None:
        self.model = FakeAdapter(*answers)
        self.budget = Budget()
        settings = ToolSettings("emulated", COMPATIBLE, decide=decide)
        tools = with_tools(self.model, settings, self.retried(self.model))
        self.adapter = self.retried(Recall(tools, MemoryStore()))

    def retried(self, inner: Adapter) -> Retry:
        return Retry(inner, self.budget, first_pause=0.001)

    def ask(self, sent: ChatRequest = QUESTION) -> list[Event]:
        return ask(self.adapter, sent)

    @property
    def calls(self) -> int:
        return len(self.model.asked)


def arguments(events: list[Event]) -> str:
    return "".join(one.arguments for one in events if isinstance(one, ToolCallDelta))


def notes(events: list[Event]) -> list[str]:
    said = [one.receipt for one in events if isinstance(one, Noted)]
    return [note.code for receipt in said for note in receipt]


def test_a_failure_before_the_first_event_is_asked_again() -> None:
    nest = Nest([away()], [away()], answer(text=CALL))
    assert arguments(nest.ask()) == '{"city":"Oslo"}'
    assert nest.calls == 3
    assert nest.budget == Budget()


@pytest.mark.parametrize("sent", [QUESTION, FORCED])
@pytest.mark.parametrize("text", ["Let", CALL[:30]])
def test_what_broke_off_while_it_was_held_back_is_not_asked_again(
    sent: ChatRequest, text: str
) -> None:
    """Nothing left for the client yet, but the upstream had begun, and may send its bill."""
    nest = Nest(broken(text), answer(text=CALL))
    with pytest.raises(Unavailable) as caught:
        nest.ask(sent)
    assert nest.calls == 1
    assert caught.value.again == "same"  # the client may: it is told nothing else
    assert nest.budget == Budget()


def test_a_leak_that_is_held_back_is_not_asked_again_either() -> None:
    model = FakeAdapter(broken("<tool_call>"), answer(text="never asked for"))
    with pytest.raises(Unavailable):
        ask(Retry(LeakRescue(model), Budget(), first_pause=0.001), QUESTION)
    assert len(model.asked) == 1


def test_a_correction_that_fails_in_passing_is_asked_for_again_and_the_answer_is_not() -> None:
    nest = Nest(answer(text=FAULTY), [away()], answer(text=CALL))
    events = nest.ask()
    assert arguments(events) == '{"city":"Oslo"}'
    assert notes(events) == ["tool_call_corrected"]
    assert nest.calls == 3
    assert nest.model.asked[1].messages == nest.model.asked[2].messages
    assert nest.budget == Budget()


def test_a_correction_that_keeps_failing_leaves_the_answer_as_it_is() -> None:
    nest = Nest(answer(text=FAULTY), *([away()] for _ in range(3)))
    events = nest.ask()
    assert notes(events) == ["tool_repair_failed"]
    assert nest.calls == 4


def test_a_decision_is_made_once_however_often_its_answer_is_asked_for() -> None:
    nest = Nest(answer(text="NO_TOOL"), [away()], answer(text="It is sunny."), decide=True)
    events = nest.ask()
    assert [one.text for one in events if isinstance(one, TextDelta)] == ["It is sunny."]
    assert nest.calls == 3
    nest = Nest(answer(text="NO_TOOL"), *([away()] for _ in range(3)), decide=True)
    with pytest.raises(Unavailable) as caught:
        nest.ask()
    assert (nest.calls, caught.value.again) == (4, "elsewhere")
    assert nest.budget == Budget()


@pytest.mark.parametrize("second", [broken("It"), [OPENED, away()]])
def test_a_decisions_answer_that_breaks_off_ends_the_request(second: Answer) -> None:
    nest = Nest(answer(text="NO_TOOL"), second, decide=True)
    with pytest.raises(Unavailable):
        nest.ask()
    assert nest.calls == 2


def test_a_decision_that_fails_in_passing_is_asked_for_again() -> None:
    nest = Nest([away()], answer(text=CALL), decide=True)
    assert ToolCallStart in map(type, nest.ask())
    assert nest.calls == 2


def test_a_turn_is_remembered_once_however_often_it_was_asked_for() -> None:
    class Counting(MemoryStore):
        kept = 0

        async def keep(self, entries: Sequence[Entry], used: Sequence[bytes]) -> None:
            self.kept += 1
            await super().keep(entries, used)

    store = Counting()
    model = FakeAdapter([away()], answer(thought="hm", text="hi", turn={"thought": "hm"}))
    events = ask(Retry(Recall(model, store), Budget(), first_pause=0.001), request(user("a")))
    assert type(events[-1]) is Finish
    assert (len(model.asked), store.kept) == (2, 1)


def test_what_is_strict_refuses_before_anything_is_asked_or_repeated() -> None:
    class Losing(FakeAdapter):
        def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
            return (Planned("up", "", {}, (Note("parameter_dropped", "seed", "no seeds"),)),)

    model = Losing([OPENED])
    budget = Budget()
    with pytest.raises(BadRequest):
        ask(Retry(Strict(model), budget), request(user("a")))
    assert (model.asked, budget) == ([], Budget())
