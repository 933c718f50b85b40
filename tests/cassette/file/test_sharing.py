"""`as: N`: what turns have in common is written once, and read whole again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from middleware.cassettes.cassette import Cassette
from middleware.cassettes.errors import UnreadableCassette
from middleware.cassettes.file import cassette_text, read_cassette
from middleware.cassettes.file.parser import parse
from middleware.cassettes.file.references import Expander, Shortener
from tests.cassette.turns import again, asked, sent, turn
from tests.linear.measuring import is_within

LONG = "You are careful. " * 20
TOOLS = [{"type": "function", "function": {"name": f"tool_{at}"}} for at in range(4)]


def shorten(*bodies: Any) -> list[Any]:
    shortener = Shortener()
    return [shortener.short(0, at, body) for at, body in enumerate(bodies, 1)]


def whole(*bodies: Any) -> list[Any]:
    expander = Expander()
    return [expander.whole(0, at, body) for at, body in enumerate(bodies, 1)]


def messages(*texts: str) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


A, B = messages(LONG, "a" * 100), messages("b" * 100)
CASES: dict[str, tuple[list[Any], Any]] = {
    "the next question": (
        [{"m": 1, "messages": A, "tools": TOOLS}, {"m": 1, "messages": A + B, "tools": TOOLS}],
        {"as": 1, "messages": [{"as": 1}, *B]},
    ),
    "the same": ([{"messages": A}, {"messages": A}], {"as": 1}),
    "a field more": ([{"messages": A}, {"messages": A, "n": 1}], {"as": 1, "n": 1}),
    "a field less": ([{"messages": A, "n": 1}, {"messages": A}], {"messages": [{"as": 1}]}),
    "another order": (
        [{"messages": A, "n": 1}, {"n": 1, "messages": A}],
        {"n": 1, "messages": [{"as": 1}]},
    ),
    "a shorter history": ([{"messages": A + B}, {"messages": A}], {"messages": A}),
    "the later of two": ([{"messages": A}, {"messages": A}, {"messages": A}], {"as": 2}),
    "what helps most": (
        [
            {"messages": A + B, "t": TOOLS},
            {"messages": B, "t": TOOLS},
            {"messages": A + B + B, "t": 1},
        ],
        {"messages": [{"as": 1}, *B], "t": 1},
    ),
    "numbers are what they are": (
        [{"x": [1], "l": A}, {"x": [1.0], "l": A}],
        {"as": 1, "x": [1.0]},
    ),
    "true is no number": ([{"x": 1, "l": A}, {"x": True, "l": A}], {"as": 1, "x": True}),
    "order within maps": (
        [{"x": {"a": 1, "b": 2}, "l": A}, {"x": {"b": 2, "a": 1}, "l": A}],
        {"as": 1, "x": {"b": 2, "a": 1}},
    ),
    "an empty list and one with it": (
        [{"x": [], "l": A}, {"x": [[]], "l": A}],
        {"as": 1, "x": [[]]},
    ),
    "too little": ([{"model": "m"}, {"model": "m"}], {"model": "m"}),
    "a field called as": ([{"as": 1, "l": A}], {"as": [1], "l": A}),
    "a list of those": ([{"l": [{"as": 1}, 2]}], {"l": [{"as": 0}, {"as": 1}, 2]}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_written_of_the_last(case: str) -> None:
    bodies, last = CASES[case]
    short = shorten(*bodies)
    assert repr(short[-1]) == repr(last)
    assert repr(whole(*short)) == repr(bodies)


ITEMS = st.sampled_from(
    [*A, *B, 1, 1.0, True, None, [], [[]], {"as": 1}, {"as": 2, "first": 1}, "x" * 5000]
)
BODIES = st.dictionaries(
    st.sampled_from(["model", "messages", "tools", "as"]),
    st.one_of(ITEMS, st.lists(ITEMS, max_size=4)),
)


@given(st.lists(BODIES, max_size=6))
def test_all_bodies_come_back(bodies: list[Any]) -> None:
    assert repr(whole(*shorten(*bodies))) == repr(bodies)


BAD: dict[str, tuple[list[Any], str]] = {
    "itself": ([{"as": 1}], "as: 1; expected the number of an earlier turn"),
    "a later one": ([{"as": 2}, {}], "as: 2; expected"),
    "no number": ([{}, {"as": "1"}], "as: '1'; expected"),
    "nothing": ([{}, {"as": None}], "as: nothing; expected"),
    "two values": ([{}, {"as": [1, 2]}], "as: a list; expected"),
    "a list of a later one": ([{"l": [{"as": 1}]}], "as: 1; expected"),
    "no list": ([{"l": 5}, {"l": [{"as": 1}]}], "as: l is no list in turn 1; expected one"),
}


@pytest.mark.parametrize("case", BAD)
def test_references_to_nothing(case: str) -> None:
    bodies, problem = BAD[case]
    with pytest.raises(ValueError) as caught:
        whole(*bodies)
    assert problem in str(caught.value)


def test_what_grows_beyond_measure_is_refused() -> None:
    base = {"l": ["x" * 1000] * 1000}
    grow = [{"as": at, "l": [{"as": at}, "y"]} for at in range(1, 2000)]

    def refuse() -> None:
        with pytest.raises(ValueError, match="too much by `as`; expected at most 512 MB in all"):
            whole(base, *grow)

    assert is_within(5, refuse)


def test_what_is_written_is_within_what_is_read() -> None:
    bodies = [{"l": ["x" * (1 << 20)] * 100, "n": at} for at in range(7)]
    short = shorten(*bodies)
    assert ["as" in one for one in short] == [False, True, True, True, True, False, False]
    assert whole(*short) == bodies


def agent(count: int) -> Cassette:
    """A loop that grows by two messages a turn, with 13 KB of prompt and tools."""
    history = messages(LONG * 20)
    tools = [{"type": "function", "function": {"name": "t", "description": "Detail. " * 800}}]
    turns = []
    for at in range(1, count + 1):
        ask = {"model": "m", "messages": list(history), "tools": tools}
        upstream = {"model": "c", "system": LONG * 20, "messages": history[1:], "tools": tools}
        turns.append(turn(at, ask, exchanges=(sent(upstream),)))
        history += messages(f"call {at}" * 5, f"result {at}" * 5)
    return Cassette(tuple(turns))


def test_an_agents_turns_grow_by_what_is_new(tmp_path: Path) -> None:
    cassette = agent(20)
    assert again(tmp_path / "c.yaml", cassette) == cassette
    rows = parse(cassette_text(cassette).text, "c").value["turns"]
    sizes = [len(str(row["ask"])) + len(str(row["upstream"][0]["request"])) for row in rows]
    assert sizes[0] > 26_000
    assert max(sizes[1:]) < 1000
    assert max(sizes[10:]) < 2 * min(sizes[10:])


def test_exchanges_refer_to_those_at_their_place(tmp_path: Path) -> None:
    first, second = asked(LONG), asked("b" * 300)
    turns = (
        turn(1, asked("1"), exchanges=(sent(first), sent(second))),
        turn(2, asked("2"), exchanges=(sent(second), sent(second))),
    )
    assert again(tmp_path / "c.yaml", Cassette(turns)) == Cassette(turns)
    rows = parse(cassette_text(Cassette(turns)).text, "c").value["turns"]
    bodies = [one["request"]["body"]["json"] for one in rows[1]["upstream"]]
    assert bodies == [second, {"as": 1}]


def test_a_reference_to_nothing_is_named_with_its_line(tmp_path: Path) -> None:
    text = (
        "usetool: {cassette: 1}\nturns:\n- {ask: {body: {}}, answer: {}}\n- ask: {body: {as: 9}}\n"
    )
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(UnreadableCassette, match="line 4: turn 2: as: 9; expected the number"):
        read_cassette(tmp_path / "c.yaml")
