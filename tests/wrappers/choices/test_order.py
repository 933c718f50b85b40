"""Who is asked first: what each pick means, and where conversations stay."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.errors import GatewayError, Unavailable
from adapters.protocol import Usage
from middleware.accounts.prices import Price
from middleware.state.memory import MemoryState
from middleware.state.store import Mark
from middleware.wrappers.choices import Alternative
from middleware.wrappers.choices.conversation import conversation_of
from middleware.wrappers.choices.needs import Needs
from middleware.wrappers.choices.picks import picked, rendezvous
from tests.wrappers.choices.scene import Scene, answer, asked

NAMES = st.lists(st.text("abcdefgh", min_size=1), min_size=2, max_size=6, unique=True)


def places(names: Sequence[str], weights: Sequence[float] = ()) -> list[Alternative]:
    scene = Scene()
    found = [scene.place(name) for name in names]
    for place, weight in zip(found, weights, strict=False):
        place.weight = weight
    return found


def question(text: str, **more: Any) -> Any:
    return asked({"role": "user", "content": text}, **more)


@given(NAMES, st.text())
def test_a_place_that_goes_moves_its_own_conversations_alone(names: list[str], said: str) -> None:
    order = [place.name for place in rendezvous(places(names), said)]
    for gone in names:
        left = [name for name in names if name != gone]
        without = [place.name for place in rendezvous(places(left), said)]
        assert without == [name for name in order if name != gone]


@given(NAMES, st.text(), st.randoms())
def test_the_order_in_which_places_are_written_does_not_matter(
    names: list[str], said: str, random: Any
) -> None:
    order = [place.name for place in rendezvous(places(names), said)]
    random.shuffle(names)
    assert [place.name for place in rendezvous(places(names), said)] == order


@pytest.mark.parametrize("conversations", [True, False])
def test_weights_are_shares(conversations: bool) -> None:
    weighed = places(["a", "b", "c", "d"], [3, 1, 1, 0])

    async def firsts() -> Counter[str]:
        seen: Counter[str] = Counter()
        for number in range(4000):
            said = f"conversation {number}" if conversations else ""
            seen[(await picked("weight", weighed, Needs(asked()), said))[0].name] += 1
        return seen

    seen = asyncio.run(firsts())
    assert seen["d"] == 0
    for name, share in (("a", 0.6), ("b", 0.2), ("c", 0.2)):
        assert seen[name] / 4000 == pytest.approx(share, abs=0.05)


@settings(max_examples=30)
@given(st.text(max_size=20))
def test_who_has_no_weight_is_the_last(said: str) -> None:
    weighed = places(["a", "b", "c"], [1, 0, 2])
    order = asyncio.run(_picked("weight", weighed, said))
    assert order[-1] == "b"


async def _picked(pick: Any, found: list[Alternative], said: str = "") -> list[str]:
    return [place.name for place in await picked(pick, found, Needs(asked()), said)]


def test_who_has_more_to_do_than_its_share_is_left_to_the_end() -> None:
    found = places(["a", "b", "c"])
    first = asyncio.run(_picked("weight", found, "x"))[0]
    busy = next(place for place in found if place.name == first)
    busy.open = 3
    assert asyncio.run(_picked("weight", found, "x"))[0] == first
    busy.open = 4
    assert asyncio.run(_picked("weight", found, "x"))[-1] == first


def test_the_quickest_is_asked_and_who_was_never_asked_is_tried() -> None:
    found = places(["slow", "quick", "new"])
    found[0].answered(2.0)
    found[1].answered(0.1)
    firsts = Counter(asyncio.run(_picked("latency", found))[0] for _ in range(200))
    assert firsts["new"] > 150
    found[2].failed()
    firsts = Counter(asyncio.run(_picked("latency", found))[0] for _ in range(200))
    assert firsts["quick"] > 150
    for _ in range(4):
        found[1].answered(9.0)
    firsts = Counter(asyncio.run(_picked("latency", found))[0] for _ in range(200))
    assert firsts["new"] > 150


def test_who_has_the_fewest_open_calls_is_asked() -> None:
    found = places(["a", "b", "c"])
    found[0].open, found[1].open, found[2].open = 2, 0, 1
    assert asyncio.run(_picked("busy", found)) == ["b", "c", "a"]


def test_who_costs_least_for_this_prompt_and_answer_is_asked() -> None:
    found = places(["unknown", "answers", "reads"])
    for place, given_, said in ((found[1], 1e-6, 20e-6), (found[2], 10e-6, 2e-6)):
        price = Price(given_, said, given_, given_, said)
        place.cost = lambda tokens, more, price=price: price.cost(Usage(tokens, more))
    long = asked({"role": "user", "content": "word " * 8000}, params={"max_tokens": 20})
    short = asked(params={"max_tokens": 4000})

    def first(request: Any) -> list[str]:
        order = asyncio.run(picked("cost", found, Needs(request), ""))
        return [place.name for place in order]

    assert first(long) == ["answers", "reads", "unknown"]
    assert first(short) == ["reads", "answers", "unknown"]


def away() -> GatewayError:
    return Unavailable("away")


def test_a_conversation_that_moved_stays_and_new_ones_use_the_place_that_returned() -> None:
    scene = Scene()
    model = scene.model([scene.place("a", away()), scene.place("b")], sticky=True)
    assert answer(model, question("one")) == ("b", "a=failed, b=ok")
    later = asked(
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "and?"},
    )
    assert answer(model, later) == ("b", "b=ok")
    assert answer(model, question("two")) == ("a", "a=ok")


def test_without_sticking_it_returns_at_once() -> None:
    scene = Scene()
    model = scene.model([scene.place("a", away()), scene.place("b")])
    assert answer(model, question("one"))[0] == "b"
    assert answer(model, question("one"))[0] == "a"


def test_of_a_pick_that_changes_the_place_is_remembered() -> None:
    scene = Scene()
    found = [scene.place("a"), scene.place("b")]
    model = scene.model(found, sticky=True, pick="busy")
    first = answer(model, question("one"))[0]
    for place in found:
        place.open = 5 if place.name == first else 0
    assert answer(model, question("one"))[0] == first


def test_a_conversation_is_what_stays_the_same_in_each_of_its_turns() -> None:
    system = {"role": "system", "content": "You are one and the same."}
    one, two = {"role": "user", "content": "one"}, {"role": "user", "content": "two"}
    told = {"role": "assistant", "content": "x"}
    assert conversation_of(asked(system, one)) == conversation_of(asked(system, one, told, two))
    assert conversation_of(asked(system, one)) != conversation_of(asked(system, two))
    named = {"prompt_cache_key": "agent-7"}
    assert conversation_of(asked(one, params=named)) == conversation_of(asked(two, params=named))


class Counting(MemoryState):
    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    async def read(self, names: Sequence[str]) -> Sequence[Mark | None]:
        self.reads += 1
        return await super().read(names)


def test_nothing_is_looked_for_where_nothing_is_marked() -> None:
    scene = Scene()
    state = scene.state = Counting()
    model = scene.model([scene.place("a"), scene.place("b")], sticky=True)
    assert answer(model) == ("a", "a=ok")
    assert state.reads == 0
    asyncio.run(state.mark("conversation:another", "b", 60))
    assert answer(model) == ("a", "a=ok")
    assert state.reads > 0
