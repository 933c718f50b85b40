"""Places that cannot do what a request needs are passed over without a call, and named."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.errors import BadRequest
from adapters.outcomes import Passing
from adapters.protocol import RESULT_OF, ChatRequest
from adapters.shared.traits import Traits
from tests.wrappers.choices.scene import Scene, answer, asked, route_of

IMAGE = {
    "role": "user",
    "content": [
        {"type": "text", "text": "what is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ],
}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
SCHEMA = {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}
LONG = asked({"role": "user", "content": "沈阳" * 400})

CASES: tuple[tuple[Passing, Traits, dict[str, Any], ChatRequest], ...] = (
    ("no_vision", Traits(vision=False), {}, asked(IMAGE)),
    ("no_json_schema", Traits(json_schema=False), {}, asked(params=SCHEMA)),
    ("no_tools", Traits(), {"emulates": True}, asked(tools=(TOOL,))),
    ("no_context", Traits(context_length=500), {}, LONG),
    ("absent", Traits(), {"absent": "its key is not set"}, asked()),
)


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_who_cannot_is_passed_over_and_nobody_is_a_400(
    case: tuple[Passing, Traits, dict[str, Any], ChatRequest],
) -> None:
    reason, known, more, request = case
    scene = Scene()
    first = scene.place("a", known=known, **more)
    model = scene.model([first], [scene.place("b")], native=True)
    fresh = asked(*request.messages, params=request.params, tools=request.tools)
    assert answer(model, fresh) == ("b", f"a={reason}, b=ok")
    assert scene.called() == {"b": 1}
    again = asked(*request.messages, params=request.params, tools=request.tools)
    with pytest.raises(BadRequest) as caught:
        answer(scene.model([first], [], native=True), again)
    assert caught.value.code == "no_choice"
    assert f"a ({reason})" in caught.value.message
    assert route_of(again) == f"a={reason}"


@pytest.mark.parametrize("known", [Traits(), Traits(vision=True, context_length=1 << 20)])
def test_what_is_not_known_it_can(known: Traits) -> None:
    scene = Scene()
    assert answer(scene.model([scene.place("a", known=known)]), asked(IMAGE)) == ("a", "a=ok")


def test_a_request_without_the_need_goes_there() -> None:
    scene = Scene()
    blind = Traits(vision=False, json_schema=False, context_length=500)
    model = scene.model([scene.place("a", known=blind, emulates=True)], native=True)
    assert answer(model, asked()) == ("a", "a=ok")


def test_tools_by_prompt_will_do_where_native_ones_are_not_demanded() -> None:
    scene = Scene()
    model = scene.model([scene.place("a", emulates=True)])
    assert answer(model, asked(tools=(TOOL,))) == ("a", "a=ok")


def test_an_image_of_a_tool_goes_to_who_reads_it_and_else_to_anybody() -> None:
    blind, scene = Traits(vision=False), Scene()
    given = {**IMAGE, "role": "tool", "tool_call_id": "c", RESULT_OF: "client"}
    places = [scene.place("a", known=blind), scene.place("b", known=blind)]
    assert answer(scene.model(places), asked(given)) == ("a", "a=ok")
    seeing = [*places, scene.place("c", known=Traits(vision=True))]
    assert answer(scene.model(seeing), asked(given)) == ("c", "a=no_vision, b=no_vision, c=ok")
    with pytest.raises(BadRequest):
        answer(scene.model(places), asked(given, IMAGE))
