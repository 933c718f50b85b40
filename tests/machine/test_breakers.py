"""Breakers of one process: when they open, what half open lets through, what is kept."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from middleware.machine.board import Entry
from middleware.machine.memory import MemoryBoard

NAME = "up/m"


@dataclass
class Bench:
    time: float = 1000.0
    board: MemoryBoard = field(init=False)

    def __post_init__(self) -> None:
        self.board = MemoryBoard(now=lambda: self.time)

    def tell(self, marks: str) -> None:
        """`.` is well, `x` is not, `-` says nothing."""
        for mark in marks:
            self.board.leave(NAME, {".": True, "x": False, "-": None}[mark])

    def enter(self) -> Entry:
        return asyncio.run(self.board.enter(NAME))

    def opened(self) -> Bench:
        self.tell("x" * 20)
        return self


@pytest.mark.parametrize(
    ("marks", "opens"),
    [
        ("x" * 19, False),
        ("x" * 20, True),
        ("." * 10 + "x" * 10, True),
        ("." * 11 + "x" * 10, False),
        ("..x" * 20, False),
        ("-" * 50 + "x" * 19, False),
        ("x" * 19 + "." * 30, False),
    ],
)
def test_half_of_at_least_twenty_calls_open_it(marks: str, opens: bool) -> None:
    bench = Bench()
    bench.tell(marks)
    assert bench.board.breaker(NAME) == ("open" if opens else "closed")
    assert bench.enter() == ("refused" if opens else "call")


Marks = st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=80)


@given(Marks)
def test_only_the_last_thirty_seconds_count(marks: list[tuple[int, bool]]) -> None:
    bench, seen = Bench(), list[tuple[float, bool]]()
    for later, well in marks:
        bench.time += later
        bench.board.leave(NAME, well)
        seen = [*seen, (bench.time, well)]
        window = [good for at, good in seen if at > bench.time - 30]
        if not well and len(window) >= 20 and window.count(False) * 2 >= len(window):
            assert bench.board.breaker(NAME) == "open"
            return
        assert bench.board.breaker(NAME) == "closed"


def test_open_it_refuses_for_ten_seconds_then_lets_one_probe_through() -> None:
    bench = Bench().opened()
    assert bench.board.reopens(NAME) == 10
    bench.time += 9.9
    assert bench.enter() == "refused"
    bench.time += 0.2
    assert bench.board.breaker(NAME) == "half_open"
    assert [bench.enter() for _ in range(3)] == ["probe", "refused", "refused"]


def test_a_failed_probe_doubles_the_pause_up_to_a_minute() -> None:
    bench, pauses = Bench().opened(), []
    for _ in range(4):
        bench.time += bench.board.reopens(NAME)
        assert bench.enter() == "probe"
        bench.board.leave(NAME, False, probe=True)
        pauses.append(bench.board.reopens(NAME))
    assert pauses == [20, 40, 60, 60]


def test_an_answered_probe_closes_it_and_the_past_is_forgotten() -> None:
    bench = Bench().opened()
    bench.time += 10
    bench.enter()
    bench.board.leave(NAME, True, probe=True)
    assert bench.board.breaker(NAME) == "closed"
    bench.tell("x" * 19)
    assert bench.enter() == "call"
    bench.tell("x")
    assert bench.board.reopens(NAME) == 10


@pytest.mark.parametrize("waited", [0, 61])
def test_a_probe_that_says_nothing_is_made_again(waited: int) -> None:
    bench = Bench().opened()
    bench.time += 10
    assert bench.enter() == "probe"
    if not waited:  # its client left
        bench.board.leave(NAME, None, probe=True)
    bench.time += waited
    assert bench.enter() == "probe"


def test_what_began_before_it_opened_changes_nothing() -> None:
    bench = Bench().opened()
    bench.time += 10
    bench.enter()
    bench.tell("xx..")
    assert bench.board.breaker(NAME) == "half_open"
    assert bench.enter() == "refused"


def test_those_that_were_open_are_told_and_names_are_bounded() -> None:
    bench = Bench().opened()
    for number in range(4095):
        bench.board.leave(f"up/{number}", True)
    assert bench.board.breakers() == {NAME: "open"}
    bench.board.leave("up/one too many", True)
    assert bench.board.breakers() == {NAME: "open"}


def test_where_all_are_open_the_oldest_goes() -> None:
    board = MemoryBoard(least=1)
    for number in range(4097):
        board.leave(f"up/{number}", False)
    assert len(board.breakers()) == 4096
    assert board.breaker("up/0") == "closed"
