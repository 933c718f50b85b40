"""A client may bound the calls of server tools: `RequestContext.most_calls`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from adapters.protocol import ChatRequest
from middleware.doors.chat_body import says_more
from tests.support.adapters import FakeAdapter
from tests.support.tools import FakeShelf
from tests.wrappers.server_tools.rounds import (
    CLIENT_TOOL,
    answer,
    asked,
    calling,
    saying,
    wrapped,
)

NOW = ("c1", "now", "{}")


def bounded(most: int, **fields: Any) -> ChatRequest:
    request = asked(**fields)
    return replace(request, call=replace(request.call, most_calls=most))


def test_the_bound_holds_over_all_rounds() -> None:
    shelf = FakeShelf(weather__now="x")
    model = FakeAdapter(calling(NOW), calling(NOW), saying("Enough."))
    got = answer(wrapped(model, shelf), bounded(2))
    assert (got.text, got.notes) == ("Enough.", ["rounds_exhausted"])
    assert len(shelf.ran("weather.now")) == 2
    assert [len(request.tools) for request in model.asked] == [1, 1, 0]


def test_what_is_below_the_bound_is_as_ever() -> None:
    model = FakeAdapter(calling(NOW), saying("Fine."))
    got = answer(wrapped(model, FakeShelf(weather__now="x")), bounded(2))
    assert (got.text, got.notes) == ("Fine.", [])


def test_of_a_round_with_too_many_the_first_are_run_and_the_others_never_were() -> None:
    shelf = FakeShelf(a__one="1", b__two="2")
    model = FakeAdapter(calling(("x", "two", "{}"), ("y", "one", "{}")), saying("End"))
    answer(wrapped(model, shelf), bounded(1))
    assert (len(shelf.ran("b.two")), shelf.ran("a.one")) == (1, [])
    *_, turn, result = model.last()
    assert [call["id"] for call in turn["tool_calls"]] == ["x"]
    assert result["tool_call_id"] == "x"


def test_the_client_s_own_tools_stay_and_may_be_called() -> None:
    model = FakeAdapter(calling(NOW), calling(("c2", "mine", "{}")))
    got = answer(wrapped(model, FakeShelf(weather__now="x")), bounded(1, tools=(CLIENT_TOOL,)))
    assert [request.tools[-1]["function"]["name"] for request in model.asked] == ["now", "mine"]
    assert (got.reason, [call[0] for call in got.calls]) == ("tool_calls", ["c2"])


def test_a_tool_that_was_taken_over_is_the_client_s_again() -> None:
    shelf = FakeShelf(mine="x")
    model = FakeAdapter(calling(("c1", "mine", "{}")), calling(("c2", "mine", "{}")))
    got = answer(
        wrapped(model, shelf, patterns=(), takeover=("mine",)), bounded(1, tools=(CLIENT_TOOL,))
    )
    assert (len(shelf.ran("mine")), [call[0] for call in got.calls]) == (1, ["c2"])


def test_a_call_that_is_made_all_the_same_is_not_run() -> None:
    shelf = FakeShelf(weather__now="x")
    got = answer(wrapped(FakeAdapter(calling(NOW), calling(NOW)), shelf), bounded(1))
    assert (got.reason, got.calls, len(shelf.ran("weather.now"))) == ("stop", [], 1)


def test_a_recording_keeps_it_as_its_own_door_said_it() -> None:
    assert says_more(bounded(1))
    assert not says_more(asked())
