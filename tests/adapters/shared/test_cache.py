"""What was worked out from an object is remembered for that object alone, within bytes."""

from __future__ import annotations

import gc
import tracemalloc

import orjson

from adapters.shared.cache import by_identity
from adapters.shared.toolbox import REMEMBERED, declared_tools, key_of, said_in, toolbox, tools_text
from tests.adapters.shared.test_toolbox import ALL, WEATHER, request


def test_an_object_is_read_once_and_an_equal_one_anew() -> None:
    made: list[tuple[int, ...]] = []

    @by_identity(6150)
    def text(numbers: tuple[int, ...], _: str) -> bytes:
        made.append(numbers)
        return bytes(numbers)

    several = [tuple(range(at, at + 30)) for at in range(4)]
    assert text(several[0], "") is text(several[0], "")
    assert text((*several[0][:1], *several[0][1:]), "") == text(several[0], "")
    assert len(made) == 2
    for one in several[1:]:  # the equal one was used less, and is out before it
        text(several[0], "")
        text(one, "")
    made.clear()
    assert text(several[0], "") == bytes(several[0])
    assert not made
    assert text(several[0], "other") == bytes(several[0])
    assert made == [several[0]], "for another word it is made anew"
    made.clear()
    text((), "")
    text((), "")
    assert made == [(), ()], "what is empty is not kept"


def test_many_small_tools_take_no_more_room_than_a_few_large_ones() -> None:
    def remember(first: int) -> None:
        for at in range(first, first + 4000):
            function = {**WEATHER["function"], "name": f"f{at}"}
            declared_tools(key_of(({**WEATHER, "function": function},), ""))

    remember(0)
    gc.collect()
    tracemalloc.start()
    remember(4000)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < 3 * REMEMBERED


def test_tools_are_known_by_the_tuple_they_come_in() -> None:
    tools = (WEATHER, {**WEATHER, "function": {**WEATHER["function"], "name": "other"}})
    assert key_of(tools, "") is key_of(tools, "")
    assert toolbox(request(*ALL)).tools is toolbox(request(*ALL)).tools
    huge = {**WEATHER, "function": {**WEATHER["function"], "description": "x" * (256 << 10)}}
    assert key_of((huge,), ""), "256 KB are remembered"


def test_owners_have_their_tools_apart() -> None:
    tools = (WEATHER,)
    one, other = key_of(tools, "one"), key_of(tools, "other")
    assert one != other
    assert said_in(one) == said_in(other) == orjson.loads(tools_text(tools, "third"))
    assert declared_tools(one) == declared_tools(other)
    assert declared_tools(one).tools is not declared_tools(other).tools
