"""The loop: rounds of the model and of tools, one answer for the client."""

from __future__ import annotations

import pytest

from adapters.errors import RateLimited
from adapters.protocol import (
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
from tests.support.adapters import FakeAdapter
from tests.support.tools import FakeShelf, declared
from tests.wrappers.server_tools.rounds import (
    CLIENT_TOOL,
    OPENED,
    USER,
    answer,
    asked,
    calling,
    rounds,
    said,
    saying,
    wrapped,
)


def test_a_call_is_run_and_its_result_goes_up_with_the_next_ask() -> None:
    got, model = rounds(
        FakeShelf(weather__now="sunny"),
        calling(("c1", "now", '{"city": "x"}')),
        saying("It is sunny."),
    )
    assert (got.text, got.reason, got.calls) == ("It is sunny.", "stop", [])
    first, second = model.asked
    assert [tool["function"]["name"] for tool in first.tools] == ["now"]
    assert second.tools == first.tools
    assert list(second.messages) == [
        USER,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "now", "arguments": '{"city":"x"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    assert first.call.id != second.call.id  # leaves make ids of it


def test_texts_of_rounds_stand_apart_unless_they_do_already() -> None:
    call = ("c1", "now", "{}")
    shelf = FakeShelf(weather__now="sunny")
    got, _ = rounds(shelf, calling(call, text="One."), calling(call, text="Two.\n"), saying("End"))
    assert got.text == "One.\n\nTwo.\nEnd"
    got, _ = rounds(shelf, calling(call, text="One."), saying("\nEnd"))
    assert got.text == "One.\nEnd"
    got, _ = rounds(shelf, calling(call), saying("End"))
    assert got.text == "End"


def test_text_leaves_before_the_tool_has_run() -> None:
    shelf = FakeShelf(weather__now="sunny")
    got, _ = rounds(shelf, calling(("c1", "now", "{}"), text="Wait."), saying("End"))
    assert got.batches[0] == (OPENED, TextDelta("Wait."))
    assert [type(event) for batch in got.batches for event in batch].count(Opened) == 1


def test_usage_is_of_all_rounds_and_the_parts_stay_legible() -> None:
    got, _ = rounds(FakeShelf(weather__now="x"), calling(("c1", "now", "{}")), saying("End"))
    assert got.usage is not None
    assert (got.usage.prompt, got.usage.completion) == (30, 3)
    assert got.usage.parts == (("round_1", Usage(10, 1)), ("round_2", Usage(20, 2)))
    got, _ = rounds(FakeShelf(weather__now="x"), saying("End"))
    assert got.usage == Usage(20, 2)


def test_the_parts_of_a_pipeline_keep_their_names() -> None:
    used = Usage(3, 3, parts=(("reasoner", Usage(1, 1)), ("answerer", Usage(2, 2))))
    ending = Finish("tool_calls", used)
    first = (OPENED, ToolCallStart(0, "c1", "now"), ToolCallDelta(0, "{}"), ending)
    got, _ = rounds(FakeShelf(weather__now="x"), first, saying("End"))
    assert got.usage is not None
    assert [name for name, _ in got.usage.parts] == ["reasoner", "answerer", "round_2"]


def test_a_call_of_what_nobody_offered_is_told_what_there_is() -> None:
    request = asked(tools=(CLIENT_TOOL,))
    model = FakeAdapter(calling(("c1", "strange", "{}")), saying("End"))
    got = answer(wrapped(model, FakeShelf(weather__now="x")), request)
    told = model.last()[-1]
    assert got.calls == []
    assert told["is_error"] is True
    assert told["content"].startswith("Error: ")
    assert all(name in told["content"] for name in ("strange", "now", "mine"))


def test_what_a_tool_failed_with_goes_up_as_an_error() -> None:
    _, model = rounds(
        FakeShelf(weather__now="Error: no such city"), calling(("c1", "now", "{}")), saying("End")
    )
    assert model.last()[-1]["is_error"] is True


def test_results_stand_in_the_order_of_the_calls() -> None:
    shelf = FakeShelf(a__one="1", b__two="2")
    _, model = rounds(shelf, calling(("x", "two", "{}"), ("y", "one", "{}")), saying("End"))
    assert [message["content"] for message in model.last()[-2:]] == ["2", "1"]


def test_after_the_last_round_the_model_has_to_answer_without_tools() -> None:
    shelf, call = FakeShelf(weather__now="x"), ("c1", "now", "{}")
    got, model = rounds(shelf, calling(call), calling(call), saying("Enough."), max_rounds=2)
    assert (got.text, got.notes) == ("Enough.", ["rounds_exhausted"])
    assert [len(request.tools) for request in model.asked] == [1, 1, 0]
    got, model = rounds(shelf, calling(call), calling(call), max_rounds=1)
    assert (got.reason, got.calls, len(shelf.ran("weather.now"))) == ("stop", [], 3)


def test_a_call_that_was_cut_is_not_run() -> None:
    shelf = FakeShelf(weather__now="x")
    got, _ = rounds(shelf, calling(("c1", "now", '{"ci'), text="Hm", reason="length"))
    assert (got.text, got.reason, got.calls, shelf.ran("weather.now")) == ("Hm", "length", [], [])


def test_a_call_of_the_client_that_was_cut_in_a_later_round_says_so() -> None:
    model = FakeAdapter(
        calling(("c1", "now", "{}")), calling(("c2", "mine", '{"x'), reason="length")
    )
    got = answer(wrapped(model, FakeShelf(weather__now="x")), asked(tools=(CLIENT_TOOL,)))
    assert (got.reason, [call[0] for call in got.calls]) == ("length", ["c2"])


def test_beside_json_only_the_last_text_is_told() -> None:
    request = asked(params={"response_format": {"type": "json_object"}})
    model = FakeAdapter(calling(("c1", "now", "{}"), text="Let me see."), saying("{}"))
    assert answer(wrapped(model, FakeShelf(weather__now="x")), request).text == "{}"


def test_an_error_of_a_later_round_keeps_its_status_if_nothing_has_left() -> None:
    shelf, call = FakeShelf(weather__now="x"), ("c1", "now", "{}")
    failure = RateLimited("slow down")
    got, _ = rounds(shelf, calling(call), (failure,))
    assert (got.error, got.batches) == (failure, [])
    got, _ = rounds(shelf, calling(call, text="Hm"), (failure,))
    assert (got.error, got.text, got.reason) == (failure, "Hm", "")


def test_a_note_is_told_once() -> None:
    note = Note("temperature_clamped", "temperature", "lowered")
    opened = Opened((note,), OPENED.upstream)
    shelf = FakeShelf(weather__now="x")
    got, _ = rounds(
        shelf,
        (opened, *calling(("c1", "now", "{}"), text="Hm")[1:]),
        (opened, Noted((Note("refusal", "", "no"),)), *saying("End")[1:]),
    )
    assert got.notes == ["temperature_clamped", "refusal"]


def test_thoughts_of_two_rounds_stand_apart() -> None:
    first = calling(("c1", "now", "{}"))
    first = (first[0], ReasoningDelta("look"), *first[1:])
    got, _ = rounds(FakeShelf(weather__now="x"), first, (OPENED, ReasoningDelta("so"), *END))
    assert got.reasoning == "look\n\nso"


END = saying("End")[1:]


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "mine"}}], ids=str
)
def test_a_forced_choice_is_about_the_client_s_tools(choice: str | Json) -> None:
    model = FakeAdapter(calling(("c1", "mine", "{}")))
    request = asked(tools=(CLIENT_TOOL,), tool_choice=choice)
    answer(wrapped(model, FakeShelf(weather__now="x")), request)
    assert model.asked[0].tools == (CLIENT_TOOL,)


def test_a_call_of_ours_where_the_client_wants_its_own_is_told_to_the_model() -> None:
    shelf = FakeShelf(weather__now="x")
    model = FakeAdapter(calling(("c1", "now", "{}")), calling(("c2", "mine", "{}")))
    request = asked(tools=(CLIENT_TOOL,), tool_choice="required")
    got = answer(wrapped(model, shelf), request)
    assert ([call[0] for call in got.calls], shelf.ran("weather.now")) == (["c2"], [])
    assert model.last()[-1]["content"] == "Error: there is no tool 'now'. There are: mine."
    assert [one.tool_choice for one in model.asked] == ["required", "required"]


@pytest.mark.parametrize("tools", [(CLIENT_TOOL,), ()], ids=["own", "no"])
def test_with_none_nothing_is_called(tools: tuple[Json, ...]) -> None:
    model, shelf = FakeAdapter(saying("off")), FakeShelf(weather__now="x")
    request = asked(tools=tools, tool_choice="none")
    assert answer(wrapped(model, shelf), request).text == "off"
    assert model.asked[0] == request


def test_what_a_client_allows_is_said_of_its_own_tools() -> None:
    allowed: Json = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "mine"}}]}
    model = FakeAdapter(saying("End"))
    request = asked(
        tools=(CLIENT_TOOL,), tool_choice={"type": "allowed_tools", "allowed_tools": allowed}
    )
    answer(wrapped(model, FakeShelf(weather__now="x")), request)
    choice = model.asked[0].tool_choice
    assert isinstance(choice, dict)
    names = [tool["function"]["name"] for tool in choice["allowed_tools"]["tools"]]
    assert names == ["mine", "now"]


def test_the_client_s_tool_of_the_same_name_wins() -> None:
    model, shelf = FakeAdapter(calling(("c1", "now", "{}"))), FakeShelf(weather__now="x")
    got = answer(wrapped(model, shelf), asked(tools=(declared("now"),)))
    assert ([call[1] for call in got.calls], shelf.ran("weather.now")) == (["now"], [])
    # Nothing is left to be run here: it is told all the same.
    assert [(note.code, note.field) for note in got.receipt] == [("tool_shadowed", "tools.weather")]


NAMED: Json = {"type": "function", "function": {"name": "now"}}


@pytest.mark.parametrize("choice", [NAMED, "auto"], ids=["named", "auto"])
@pytest.mark.parametrize("patterns", [(), ("*",)], ids=["taken", "both"])
def test_a_tool_that_is_taken_over_is_run_here_as_the_client_declares_it(
    patterns: tuple[str, ...], choice: str | Json
) -> None:
    own = {"type": "function", "function": {"name": "now", "description": "The client's"}}
    model, shelf = FakeAdapter(calling(("c1", "now", "{}")), saying("End")), FakeShelf(w__now="x")
    adapter = wrapped(model, shelf, patterns=patterns, takeover=("now",))
    got = answer(adapter, asked(tools=(own,), tool_choice=choice))
    assert (got.text, got.calls, got.notes, shelf.ran("w.now")) == ("End", [], [], ["{}"])
    assert [request.tools for request in model.asked] == [(own,), (own,)]
    assert [request.tool_choice for request in model.asked] == [
        choice,
        None if choice is NAMED else choice,
    ]


def test_a_plan_shows_the_tools() -> None:
    model = FakeAdapter()
    (planned,) = wrapped(model, FakeShelf(w__now="x")).plan(asked(tools=(declared("now"),)))
    assert [note.code for note in planned.receipt] == ["tool_shadowed"]


def test_the_conversation_is_what_the_model_reads() -> None:
    shelf = FakeShelf(w__now="sunny")
    _, model = rounds(shelf, calling(("c1", "now", "{}"), text="Wait."), saying("End"))
    expected = [
        ("user", "what is it like?"),
        ("assistant", ("Wait.", "now")),
        ("tool", "sunny"),
    ]
    assert said(model.last()) == expected
