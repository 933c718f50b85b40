"""Where an ask goes when a place fails: at once elsewhere, at most three calls, then as told."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from adapters.compatible import KIND
from adapters.errors import (
    BadRequest,
    GatewayError,
    RateLimited,
    Refused,
    Truncated,
    Unavailable,
)
from adapters.protocol import Opened, TextDelta, Upstream
from adapters.shared.traits import Traits
from middleware.wrappers.emulation import ToolSettings, with_tools
from middleware.wrappers.route import Route
from tests.support.adapters import FakeAdapter
from tests.wrappers.choices.scene import Scene, answer, asked, heard, route_of


def away() -> GatewayError:
    return Unavailable("away")


def limited(seconds: str = "30") -> GatewayError:
    return RateLimited("slow down", retry_after=seconds)


def elsewhere(error: GatewayError) -> GatewayError:
    error.again = "elsewhere"
    return error


def refused(code: str, again: str = "never") -> GatewayError:
    error = Refused("no", code=code)
    error.again = "elsewhere" if again == "elsewhere" else "never"
    return error


MOVES = {
    "failed": away(),
    "rate_limited": limited(),
    "refused": refused("upstream_auth", "elsewhere"),
    "quota": refused("upstream_billing", "elsewhere"),
    "missing": refused("model_not_found", "elsewhere"),
    "timeout": elsewhere(Unavailable("silent", code="upstream_timeout")),
}


@pytest.mark.parametrize("code", MOVES)
def test_a_failure_goes_to_the_next_place_at_once(code: str) -> None:
    scene, began = Scene(), time.monotonic()
    model = scene.model([scene.place("a", MOVES[code])], [scene.place("b")])
    assert answer(model) == ("b", f"a={code}, b=ok")
    assert time.monotonic() - began < 0.3


@pytest.mark.parametrize("error", [refused("upstream_bad_request"), Truncated("cut")])
def test_a_clients_mistake_and_what_was_billed_go_nowhere(error: GatewayError) -> None:
    scene = Scene()
    with pytest.raises(GatewayError) as caught:
        answer(scene.model([scene.place("a", error)], [scene.place("b")]))
    assert caught.value is error
    assert scene.called() == {"a": 1}


def test_three_places_are_asked_and_then_the_last_failure_is_told() -> None:
    scene, last = Scene(), Unavailable("last", retry_after="7")
    places = [scene.place("a", away()), scene.place("b", away()), scene.place("c", last)]
    request = asked()
    with pytest.raises(Unavailable) as caught:
        answer(scene.model(places, [scene.place("d")]), request)
    assert caught.value is last
    assert (last.again, last.retry_after) == ("elsewhere", "7")
    assert route_of(request) == "a=failed, b=failed, c=failed"


def test_a_place_that_asks_twice_has_made_two_of_the_three_calls() -> None:
    scene = Scene()
    no_tools = refused("upstream_bad_request")
    no_tools.message, no_tools.status = "this model does not support tools", 400
    first = scene.place("a", no_tools, away())
    route = first.adapter
    assert isinstance(route, Route)
    settings = ToolSettings("auto", KIND)
    inner = with_tools(scene.fakes["a"], settings, None, route.inner)
    first.adapter = replace(route, inner=inner)
    request = replace(asked(), tools=({"type": "function", "function": {"name": "f"}},))
    with pytest.raises(Unavailable):
        answer(scene.model([first, scene.place("b", away())], [scene.place("c")]), request)
    assert route_of(request) == "a=client, a=failed, b=failed"


def test_another_key_of_the_place_comes_first_and_one_call_is_kept_for_the_next_place() -> None:
    scene = Scene()
    place = scene.place("a", limited(), limited(), limited(), keys=4)
    assert answer(scene.model([place], [scene.place("b")])) == (
        "b",
        "a=rate_limited, a=rate_limited, b=ok",
    )


def test_a_place_alone_is_asked_with_three_keys() -> None:
    scene = Scene()
    place = scene.place("a", limited(), limited(), keys=4)
    assert answer(scene.model([place])) == ("a", "a=rate_limited, a=rate_limited, a=ok")
    assert len({call.call.chosen for call in scene.fakes["a"].asked}) == 3


def test_a_5xx_is_not_the_keys_fault() -> None:
    scene = Scene()
    place = scene.place("a", away(), keys=3)
    assert answer(scene.model([place], [scene.place("b")])) == ("b", "a=failed, b=ok")


def test_keys_that_rest_are_passed_over_while_another_place_is_left() -> None:
    scene = Scene()
    model = scene.model([scene.place("a", limited(), limited(), keys=2)], [scene.place("b")])
    assert answer(model)[1] == "a=rate_limited, a=rate_limited, b=ok"
    assert answer(model) == ("b", "a=resting, b=ok")


def test_when_all_rest_the_one_whose_rest_ends_first_is_asked_once() -> None:
    scene = Scene()
    both = scene.model([scene.place("b", limited("40"), limited("40"))], [scene.place("c")])
    scene.fakes["c"].answers = [(limited("20"),), (limited("20"),)]
    for route in ("b=rate_limited, c=rate_limited", "b=resting, c=resting, c=rate_limited"):
        request = asked()
        with pytest.raises(RateLimited):
            answer(both, request)
        assert route_of(request) == route


def test_a_rest_that_ends_soon_is_waited_for() -> None:
    scene = Scene()
    model = scene.model([scene.place("a", limited("0.2"))], [scene.place("b", limited("30"))])
    assert answer(model) == ("a", "a=rate_limited, b=rate_limited, a=ok")


def test_a_sole_place_is_asked_again_after_a_pause() -> None:
    scene = Scene()
    model = scene.model([scene.place("a", away(), keys=2)])
    assert answer(model)[1] == "a=failed, a=ok"
    with pytest.raises(Unavailable):
        answer(scene.model([scene.place("b", away(), keys=2)], times=0))


def test_nobody_is_asked_after_the_deadline() -> None:
    scene = Scene()
    slow = scene.place("a")
    scene.fakes["a"].answers = [(0.1, away())]
    request = asked()
    with pytest.raises(GatewayError) as caught:
        answer(scene.model([slow], [scene.place("b")], total=0.05), request)
    assert caught.value.status == 504
    assert scene.called() == {"a": 1}


def test_an_open_breaker_is_passed_over_and_asked_for_its_word_when_it_is_alone() -> None:
    scene = Scene()
    model = scene.model([scene.place("a")], [scene.place("b")])
    for _ in range(20):
        scene.board.leave("a/a-1", well=False)
    assert answer(model) == ("b", "a=open, b=ok")
    alone, request = scene.model([scene.place("a", keys=2)]), asked()
    with pytest.raises(GatewayError) as caught:
        answer(alone, request)
    assert (caught.value.status, caught.value.code) == (503, "upstream_unavailable")
    assert route_of(request) == "a=open"
    assert int(caught.value.retry_after or 0) >= 1


def test_a_context_that_is_too_small_moves_to_a_larger_one_alone() -> None:
    error = refused("context_length_exceeded")
    scene = Scene()
    small, tiny = (scene.place(name, known=Traits(context_length=100)) for name in ("s", "t"))
    scene.fakes["s"].answers = [(error,), (error,)]
    large = scene.place("l", known=Traits(context_length=200))
    assert answer(scene.model([small], [tiny, scene.place("unknown"), large])) == (
        "l",
        "s=too_long, t=no_context, unknown=no_context, l=ok",
    )
    with pytest.raises(Refused) as caught:
        answer(scene.model([small], [tiny]))
    assert caught.value.code == "context_length_exceeded"


def test_what_a_place_cannot_take_is_for_the_next_one() -> None:
    scene = Scene()
    lossy = BadRequest("'n' is not known", param="n")
    model = scene.model([scene.place("a", lossy, lossy)], [scene.place("b")])
    assert answer(model) == ("b", "a=lossy, b=ok")
    with pytest.raises(BadRequest) as caught:
        answer(scene.model([scene.place("a", lossy), scene.place("c", lossy)]))
    assert (caught.value.code, caught.value.param) == ("no_choice", "n")
    assert "a (lossy)" in caught.value.message


def test_nothing_goes_elsewhere_once_an_event_has_left() -> None:
    scene = Scene()
    place = scene.place("a")
    scene.fakes["a"].answers = [((Opened((), Upstream("a")), TextDelta("x")), away())]
    with pytest.raises(Unavailable):
        answer(scene.model([place], [scene.place("b")]))
    assert scene.called() == {"a": 1}
    assert place.open == 0


def test_a_client_that_leaves_ends_the_call_and_nobody_else_is_asked() -> None:
    scene = Scene()
    place = scene.place("a")
    scene.fakes["a"].answers = [(30.0,)]
    model = scene.model([place], [scene.place("b")])

    async def leave() -> None:
        task = asyncio.create_task(heard(model, asked()))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert scene.called() == {"a": 1}
    assert scene.fakes["a"].closed == 1
    assert (place.open, place.budget.at_work) == (0, 0)


def test_what_follows_in_a_request_asks_who_answered_first() -> None:
    scene = Scene()
    model = scene.model([scene.place("a", away())], [scene.place("b")])
    request = asked()
    assert asyncio.run(heard(model, request)) == "b"
    assert asyncio.run(heard(model, request)) == "b"
    assert answer(model)[0] == "a"


def test_an_upstream_without_a_key_for_this_client_is_not_passed_over() -> None:
    fake = FakeAdapter((GatewayError("send a key", status=401),), name="x")
    scene = Scene()
    model = scene.model([replace(scene.place("a"), adapter=fake)], [scene.place("b")])
    with pytest.raises(GatewayError, match="send a key"):
        answer(model)
