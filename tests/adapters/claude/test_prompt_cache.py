"""Cache breakpoints: carried wherever Claude takes them, named where it does not."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest

from adapters.protocol import Json
from tests.adapters.claude.conversations import SHENYANG, said, system
from tests.support.dialogue import assistant, result, user
from tests.support.upstreams.claude_wire import (
    WEATHER,
    claude,
    request,
    sent,
)


def marked(content: str, **said: Any) -> Json:
    return {
        "type": "text",
        "text": content,
        "prompt_cache_breakpoint": {"mode": "explicit", **said},
    }


@pytest.mark.parametrize(
    ("asked", "options", "control", "notes"),
    [
        ({}, None, {"type": "ephemeral"}, []),
        ({"ttl": "30m"}, None, {"type": "ephemeral", "ttl": "1h"}, []),
        ({"ttl": "12h"}, None, {"type": "ephemeral", "ttl": "1h"}, ["cache_lifetime_shortened"]),
        ({}, {"ttl": "30m"}, {"type": "ephemeral", "ttl": "1h"}, []),
        ({}, {"mode": "implicit"}, {"type": "ephemeral"}, ["parameter_dropped"]),
    ],
)
def test_cache_breakpoint(asked: Json, options: Any, control: Json, notes: list[str]) -> None:
    body, found = sent(request(user([marked("a", **asked)]), prompt_cache_options=options))
    assert body["messages"][0]["content"][0]["cache_control"] == control
    assert found == notes


@pytest.mark.parametrize("options", [{"ttl": "30m"}, {"mode": "implicit"}, {"scope": "x"}])
def test_cache_options_that_nothing_is_cached_by_are_named(options: Json) -> None:
    _, found = sent(request(user("a"), prompt_cache_options=options))
    assert found == ["parameter_dropped"]


@pytest.mark.parametrize("ttl", ["7d", 5, [1], {"a": 1}])
def test_a_lifetime_claude_does_not_know_is_its_shortest_and_named(ttl: Any) -> None:
    body, found = sent(request(user([marked("a", ttl=ttl)])))
    control = body["messages"][0]["content"][0]["cache_control"]
    assert (control["ttl"], found) == ("5m", ["cache_lifetime_unknown"])


def test_breakpoints_stand_wherever_parts_stand() -> None:
    own = {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}
    messages = (
        system([marked("a")]),
        user([own]),
        assistant(None, SHENYANG),
        {**result("a", ""), "content": [marked("5")]},
    )
    body, _ = sent(request(*messages, tools=[WEATHER]))
    assert "cache_control" in body["system"][0]
    assert body["messages"][0]["content"] == [own]
    (answered,) = body["messages"][2]["content"]
    assert answered["cache_control"] == {"type": "ephemeral"}
    assert answered["content"] == [said("5")]


MARK: Json = {"cache_control": {"type": "ephemeral"}}


def test_a_breakpoint_of_a_message_is_its_last_blocks() -> None:
    messages = (
        {**system([said("a"), said("b")]), **MARK},
        {**user([said("c"), said("d")]), **MARK},
        {**assistant("e", SHENYANG), **MARK},
        {**result("a", "5"), **MARK},
    )
    before = copy.deepcopy(messages)
    body, notes = sent(request(*messages, tools=[WEATHER]))
    assert [("cache_control" in block) for block in body["system"]] == [False, True]
    turns = [["cache_control" in block for block in turn["content"]] for turn in body["messages"]]
    assert turns == [[False, True], [False, True], [True]]
    assert (notes, messages) == ([], before)


def test_a_parts_own_breakpoint_counts_before_the_messages() -> None:
    own = {"type": "text", "text": "b", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    body, _ = sent(request({**user([own]), **MARK}))
    assert body["messages"][0]["content"] == [own]


@pytest.mark.parametrize(
    "message", [{**system(" "), **MARK}, {**user("a"), "cache_control": "ephemeral"}]
)
def test_a_breakpoint_that_has_no_place_is_named(message: Json) -> None:
    body, notes = sent(request(message, user("b")))
    assert "cache_control" not in orjson.dumps(body).decode()
    assert {"cache_breakpoints_dropped", "member_dropped"} & set(notes)


@pytest.mark.parametrize("inside", [True, False])
def test_a_breakpoint_of_a_tool_is_carried(inside: bool) -> None:
    function = {**WEATHER["function"], **(MARK if inside else {})}
    marked_tool = {**WEATHER, "function": function, **({} if inside else MARK)}
    for _ in range(2):  # tools are remembered, their breakpoints are not
        body, notes = sent(request(user("a"), tools=[marked_tool]))
        assert (body["tools"][0]["cache_control"], notes) == (MARK["cache_control"], [])
        body, _ = sent(request(user("a"), tools=[WEATHER]))
        assert "cache_control" not in body["tools"][0]


def test_what_stands_beside_a_function_is_named() -> None:
    _, notes = sent(request(user("a"), tools=[{**WEATHER, "defer_loading": True}]))
    assert notes == ["member_dropped"]


@pytest.mark.parametrize(
    ("tools", "before", "inside", "kept"),
    [
        (1, 1, 2, "t s 01"),
        (1, 1, 3, "s 012"),
        (1, 0, 5, "t 234"),
        (0, 2, 5, "s 234"),
        (0, 0, 5, "1234"),
        (1, 3, 0, "t s s s"),
        (1, 4, 0, "s s s s"),
    ],
)
def test_four_breakpoints_are_kept_the_last_before_the_conversation_and_the_last_in_it(
    tools: int, before: int, inside: int, kept: str
) -> None:
    messages = (
        system([marked("s") for _ in range(before)] or "s"),
        user([marked(str(n)) for n in range(inside)] or "u"),
    )
    copied = copy.deepcopy(messages)
    body, notes = sent(request(*messages, tools=[{**WEATHER, **(MARK if tools else {})}]))
    blocks = [{**body["tools"][0], "text": "t "}, *body["system"], *body["messages"][0]["content"]]
    texts = [block["text"] for block in blocks if "cache_control" in block]
    assert "".join(texts).replace(" ", "") == kept.replace(" ", "")
    assert notes == ["cache_breakpoints_dropped"] * (tools + before + inside > 4)
    assert messages == copied


def test_automatic_caching_takes_one_of_the_four() -> None:
    asked = request(user([marked(str(n)) for n in range(4)]), extra=MARK)
    body, _ = sent(asked)
    marks = ["cache_control" in block for block in body["messages"][0]["content"]]
    assert marks == [False, True, True, True]


# Where the client sets none ---------------------------------------------------------------------

AUTO, OFF = claude(cache="auto"), claude()
BLOCKS_BACK = 20
"""How far Claude looks back from a breakpoint for a prefix it knows."""


def blocks_of(body: Json) -> list[tuple[bytes, bool]]:
    """The blocks of a request in the order in which they are cached, and which have a mark."""
    found = [*body.get("tools", ()), *body.get("system", ())]
    found += [block for turn in body["messages"] for block in turn["content"]]
    plain = [{k: v for k, v in block.items() if k != "cache_control"} for block in found]
    return [
        (orjson.dumps(one), "cache_control" in block)
        for one, block in zip(plain, found, strict=True)
    ]


def paid_in_full(bodies: list[Json]) -> int:
    """Bytes that no prefix covers which an earlier request has marked."""
    known: set[tuple[bytes, ...]] = set()
    paid = 0
    for body in bodies:
        blocks = blocks_of(body)
        said = [block for block, _ in blocks]
        marks = [at + 1 for at, (_, marked) in enumerate(blocks) if marked]
        ends = [end for mark in marks for end in range(mark, max(0, mark - BLOCKS_BACK), -1)]
        hit = max((end for end in ends if tuple(said[:end]) in known), default=0)
        paid += sum(map(len, said[hit:]))
        known |= {tuple(said[:mark]) for mark in marks}
    return paid


def agent(rounds: int) -> list[Json]:
    """Requests of an agent: each has all that was said before."""
    talk: list[Json] = [system("You are an agent. " * 50), user("Mend the test.")]
    bodies = []
    for number in range(rounds):
        bodies.append([*talk])
        call = (f"call_{number}", "get_weather", "{}")
        talk += [assistant(None, call), result(f"call_{number}", f"line {number} " * 40)]
    return [sent(request(*messages, tools=[WEATHER]), AUTO)[0] for messages in bodies]


def test_a_conversation_of_20_turns_is_paid_for_once() -> None:
    bodies = agent(20)
    whole = sum(len(block) for block, _ in blocks_of(bodies[-1]))
    without = sum(len(block) for body in bodies for block, _ in blocks_of(body))
    assert paid_in_full(bodies) <= whole * 1.05
    assert without > 8 * whole
    assert paid_in_full([strip(body) for body in bodies]) == without


def strip(body: Json) -> Json:
    text = orjson.dumps(body).replace(b',"cache_control":{"type":"ephemeral"}', b"")
    bare: Json = orjson.loads(text)
    return bare


def test_what_a_client_marks_itself_is_all_that_is_marked() -> None:
    asked = request(user([marked("a")]), tools=[WEATHER])
    assert sent(asked, AUTO) == sent(asked, OFF)
