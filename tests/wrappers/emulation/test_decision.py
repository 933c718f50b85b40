"""A model that is given a thought decides on tools first, and answers only if none is needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.errors import BadRequest
from adapters.local import KIND as LOCAL
from adapters.protocol import (
    ChatRequest,
    Event,
    Finish,
    Noted,
    Opened,
    Planned,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from middleware.wrappers.emulation import Emulation, ToolSettings, with_tools
from middleware.wrappers.emulation.automatic import Automatic
from middleware.wrappers.emulation.emulated import EmulatedTools
from tests.support.adapters import FakeAdapter
from tests.support.dialogue import answer, assistant, request, result, user
from tests.support.fold import ask

TOOLS = (
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    },
)
QUESTION = user("天气?\n<thought>look it up</thought>")
BLOCK = 'USE_TOOL\nTOOL_NAME: weather\nTOOL_ARGS: {"city": "沈阳"}'


def deciding(*said: str) -> tuple[FakeAdapter, EmulatedTools]:
    model = FakeAdapter(*(answer(text=text) for text in said))
    return model, EmulatedTools(model, Emulation(decide=True))


def asked() -> ChatRequest:
    system = {"role": "system", "content": "Be kind."}
    return replace(request(system, user("a"), assistant("b"), QUESTION), tools=TOOLS)


def kinds(events: list[Event]) -> list[type]:
    return [type(event) for event in events if not isinstance(event, Noted)]


def test_a_call_is_the_whole_answer() -> None:
    model, adapter = deciding(f"I should look.\n{BLOCK}")
    events = ask(adapter, asked())
    assert kinds(events) == [Opened, ToolCallStart, ToolCallDelta, Finish]
    assert isinstance(events[-1], Finish)
    assert events[-1].reason == "tool_calls"
    assert len(model.asked) == 1
    *earlier, question = model.last()
    assert [one["content"] for one in earlier] == ["Be kind.", "a", "b"]
    assert "look it up" in question["content"]
    assert "NO_TOOL" in question["content"]


def test_without_a_call_the_answer_is_asked_for_without_tools() -> None:
    model, adapter = deciding("NO_TOOL\nREASON: known", "It is sunny.")
    events = ask(adapter, asked())
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "It is sunny."
    assert [type(event) for event in events].count(Opened) == 1
    assert model.last() == list(asked().messages)
    assert isinstance(events[-1], Finish)
    assert events[-1].usage == Usage(2, 2)


@pytest.mark.parametrize(
    "sent",
    [
        replace(asked(), tool_choice="required"),
        replace(
            request(QUESTION, assistant(None, ("id", "weather", "{}")), result("id", "5")),
            tools=TOOLS,
        ),
    ],
)
def test_a_forced_call_and_results_leave_nothing_to_decide(sent: ChatRequest) -> None:
    model, adapter = deciding(BLOCK)
    ask(adapter, sent)
    assert "NO_TOOL" not in str(model.last())
    assert len(model.asked) == 1


def test_without_tools_nothing_is_decided() -> None:
    model, adapter = deciding("hello")
    ask(adapter, request(QUESTION))
    assert model.last() == [QUESTION]


def test_unless_told_to_nothing_is_decided() -> None:
    model = FakeAdapter(answer(text="hello"))
    ask(EmulatedTools(model), asked())
    assert "NO_TOOL" not in str(model.last())


def test_a_plan_too_is_emulated_for_a_model_that_is_known_to_have_no_tools() -> None:
    class Toolless(FakeAdapter):
        def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
            if request.tools:
                raise BadRequest("It cannot call tools.", param="tools")
            return super().plan(request)

    model = Toolless()
    adapter = Automatic(model, EmulatedTools(model), model.calls_tools)
    (planned,) = adapter.plan(asked())
    assert "USE_TOOL" in planned.body["messages"][0]["content"]


def test_a_plan_for_the_embedded_model_shows_the_prompt_it_gets() -> None:
    adapter = with_tools(FakeAdapter(), ToolSettings("auto", LOCAL))
    (planned,) = adapter.plan(asked())
    assert "USE_TOOL" in planned.body["messages"][0]["content"]
    native = with_tools(FakeAdapter(), ToolSettings("auto", LOCAL, {"tools": True}))
    assert "USE_TOOL" not in str(native.plan(asked())[0].body)


def test_a_plan_that_fails_for_another_reason_fails() -> None:
    class Refusing(FakeAdapter):
        def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
            raise BadRequest("No.", param="messages")

    model = Refusing()
    with pytest.raises(BadRequest, match="No"):
        Automatic(model, EmulatedTools(FakeAdapter()), model.calls_tools).plan(asked())
