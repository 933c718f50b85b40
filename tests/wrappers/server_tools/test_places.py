"""Rounds over several places: a tool runs once, whoever answers."""

from __future__ import annotations

from dataclasses import replace

from adapters.errors import Unavailable
from middleware.wrappers.recall import MemoryStore
from middleware.wrappers.server_tools import ServerTools, ServerToolSettings
from tests.support.tools import FakeShelf
from tests.wrappers.choices.scene import Scene, route_of
from tests.wrappers.server_tools.rounds import answer, asked, calling, saying

CALL = ("c1", "now", "{}")


def failure() -> Unavailable:
    error = Unavailable("away")
    error.again = "elsewhere"
    return error


def test_a_round_is_asked_where_the_one_before_was_answered() -> None:
    scene, shelf = Scene(), FakeShelf(w__now="x")
    places = [scene.place("a", failure()), scene.place("b")]
    scene.fakes["b"].answers = [calling(CALL)]
    choices = scene.model(places)
    adapter = ServerTools(choices, shelf, ServerToolSettings("smart", ("*",)), MemoryStore())
    request = asked()
    assert answer(adapter, request).text == "b"
    assert route_of(request) == "a=failed, b=ok, b=ok"


def test_a_place_that_dies_between_two_rounds_does_not_run_the_tool_again() -> None:
    scene, shelf = Scene(), FakeShelf(w__now="x")
    places = [scene.place("a"), scene.place("b")]
    scene.fakes["a"].answers = [calling(CALL), (failure(),)]
    adapter = ServerTools(
        scene.model(places), shelf, ServerToolSettings("smart", ("*",)), MemoryStore()
    )
    request = asked()
    got = answer(adapter, request)
    assert (got.text, got.error, shelf.ran("w.now")) == ("b", None, ["{}"])
    assert route_of(request) == "a=ok, a=failed, b=ok"
    assert scene.fakes["b"].last()[-1]["content"] == "x"
    assert got.opened is not None
    assert got.opened.upstream.name == "b"


def test_without_a_journey_of_the_request_rounds_have_one_of_their_own() -> None:
    scene, shelf = Scene(), FakeShelf(w__now="x")
    places = [scene.place("a", failure()), scene.place("b")]
    scene.fakes["b"].answers = [calling(CALL), saying("End")]
    adapter = ServerTools(
        scene.model(places), shelf, ServerToolSettings("smart", ("*",)), MemoryStore()
    )
    request = asked()
    assert answer(adapter, replace(request, call=replace(request.call, journey=None))).text == "End"
    assert scene.called() == {"a": 1, "b": 2}
