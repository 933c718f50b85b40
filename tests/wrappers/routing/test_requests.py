"""The request a leaf sees: defaults, overrides, tools and strictness."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, cast

import pytest

from adapters.errors import BadRequest
from adapters.protocol import (
    ChatRequest,
    Events,
    Finish,
    Opened,
    Planned,
    TextDelta,
    Upstream,
    renamed,
)
from adapters.receipts import Note, OwnCode, Receipt
from middleware import config
from middleware.wrappers.route import Changes, Layers, Route, changes
from middleware.wrappers.strict import Strict
from tests.support.adapters import FakeAdapter, Step
from tests.support.fold import ask as events_of
from tests.wrappers.routing.routes import HEAD, HELLO, NET, asked, planned, routes


class Echo(FakeAdapter):
    """A leaf that answers with the request it saw."""

    def __init__(self, receipt: Receipt = ()) -> None:
        super().__init__(usual=self.echo, receipt=receipt)

    def echo(self, request: ChatRequest) -> Iterator[Step]:
        yield (Opened(self.receipt, Upstream("echo", request.model)), TextDelta("hi"))
        yield Finish("stop")

    def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
        body = {"model": request.model, **request.params, **request.extra}
        return (Planned("echo", "http://echo", body, self.receipt),)


# What a leaf sees ------------------------------------------------------------------------------


CHANGES = [
    ('defaults = {seed = 1}', {}, {"seed": 1}),
    ('defaults = {seed = 1}', {"seed": 2}, {"seed": 2}),
    ('defaults = {seed = 1}', {"seed": None}, {"seed": 1}),
    ('override = {seed = 1}', {"seed": 2}, {"seed": 1}),
    ('defaults = {seed = 1}\noverride = {seed = 3}', {}, {"seed": 3}),
    ('drop = ["seed"]', {"seed": 2, "user": "u"}, {"user": "u"}),
    ('drop = ["seed"]\ndefaults = {seed = 1}', {"seed": 2}, {"seed": 1}),
    ('defaults = {max_tokens = 1}', {"max_completion_tokens": 2}, {"max_completion_tokens": 2}),
    ('defaults = {max_completion_tokens = 1}', {"max_tokens": 2}, {"max_tokens": 2}),
    ('override = {max_tokens = 1}', {"max_completion_tokens": 2}, {"max_tokens": 1}),
]  # fmt: skip


def route_of(text: str, receipt: Receipt = ()) -> Route:
    found = config.parse(f'{HEAD}[models.m]\nupstream = "up"\nname = "n"\n{text}', environment={})
    return Route(Echo(receipt), "n", changes(found.models["m"]))


@pytest.mark.parametrize(("text", "sent", "seen"), CHANGES)
def test_defaults_stand_below_the_client_and_override_above(
    text: str, sent: dict[str, Any], seen: dict[str, Any]
) -> None:
    (call,) = route_of(text).plan(asked(**sent))
    assert call.body == {"model": "n", **seen}


def test_fields_openai_does_not_have_are_extras() -> None:
    route = route_of("defaults = {top_k = 5, seed = 1}\noverride = {think = true}")
    assert route.changes == Changes(
        Layers({"seed": 1}, {}), Layers({"top_k": 5}, {"think": True}), frozenset()
    )
    request = ChatRequest("m", HELLO, extra={"top_k": 9, "think": False})
    (call,) = route.plan(request)
    assert call.body == {"model": "n", "seed": 1, "top_k": 9, "think": True}


@pytest.mark.parametrize(
    ("drop", "tools", "choice"),
    [("tool_choice", 1, None), ("tools", 0, None), ("user", 1, "required")],
)
def test_tools_and_their_choice_can_be_dropped(drop: str, tools: int, choice: str | None) -> None:
    seen: list[ChatRequest] = []

    class Seer(Echo):
        def plan(self, request: ChatRequest) -> tuple[Planned, ...]:
            seen.append(request)
            return ()

    made = Changes(Layers({}, {}), Layers({}, {}), frozenset({drop}))
    tool = {"type": "function", "function": {"name": "f"}}
    Route(Seer(), "n", made).plan(ChatRequest("m", HELLO, tools=(tool,), tool_choice="required"))
    assert (len(seen[0].tools), seen[0].tool_choice) == (tools, choice)


def test_what_the_config_drops_is_in_the_receipt_if_it_was_sent() -> None:
    own = (Note(OwnCode("lost"), "x", "y"),)
    route = route_of('drop = ["seed", "top_k", "user", "tools"]', own)
    request = ChatRequest("m", HELLO, params={"seed": 1, "user": None}, extra={"top_k": 2})
    dropped = tuple(
        Note("dropped_by_config", name, "the gateway's config drops it")
        for name in ("seed", "top_k")
    )
    opened = events_of(route, request)[0]
    assert isinstance(opened, Opened)
    assert opened.receipt == dropped + own
    assert route.plan(request)[0].receipt == dropped + own


def test_a_request_is_never_changed_in_place() -> None:
    request = ChatRequest("m", HELLO, params={"seed": 1, "stop": ["a"]}, extra={"top_k": 2})
    before = copy.deepcopy(request)
    route_of('drop = ["seed"]\noverride = {stop = ["b"], think = true}').plan(request)
    assert request == before


def test_without_a_note_to_add_the_leaf_is_heard_directly() -> None:
    """A layer of generator would cost every event; the price of a name is one `replace`."""

    class Direct(Echo):
        def __init__(self) -> None:
            super().__init__()
            self.events: list[Events] = []

        def stream(self, request: ChatRequest) -> Events:
            self.events.append(super().stream(request))
            return self.events[-1]

    leaf = Direct()
    for made in (None, Changes(Layers({"seed": 1}, {}), Layers({}, {}), frozenset({"user"}))):
        assert Route(leaf, "n", made).stream(asked()) is leaf.events[-1]


# Strict ----------------------------------------------------------------------------------------


def test_strict_refuses_what_would_be_lost_and_names_all_of_it() -> None:
    receipt = (Note(OwnCode("a"), "seed", "no seeds"), Note(OwnCode("b"), "stop[1]", "too many"))
    for ask in (Strict(Echo(receipt)).plan, Strict(Echo(receipt)).stream):
        with pytest.raises(BadRequest) as caught:
            ask(asked())
        assert (caught.value.status, caught.value.code) == (400, "unsupported_parameter")
        assert caught.value.param == "seed"
        assert "'seed' (no seeds); 'stop[1]' (too many)" in caught.value.message


def test_strict_lets_a_lossless_request_through() -> None:
    assert events_of(Route(Strict(Echo()), "n"), asked())[-1] == Finish("stop")


def test_strict_stands_around_the_leaf_so_what_the_operator_drops_is_no_mistake() -> None:
    text = '[server]\nstrict = true\n[models.m]\nupstream = "up"\ndrop = ["seed"]\n'
    found = routes(text)
    assert found.listing()[0].nesting == (
        "Route",
        "Show",
        "Retry",
        "Strict",
        *NET,
        "Breaker",
        "Compatible",
    )
    assert "seed" not in planned(found, asked(seed=1)).body


def test_a_renamed_request_keeps_all_else() -> None:
    names = [one.name for one in fields(cast(Any, ChatRequest))]
    given = ChatRequest(*cast(Any, names))
    assert renamed(given, "other") == replace(given, model="other")
