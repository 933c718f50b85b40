"""What counts beyond the old model's own noise, and which turns stand beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest

from middleware.cassettes.cassette import CassetteTurn
from middleware.cassettes.diff.outcome import (
    NOISE,
    TOO_FEW,
    Judged,
    agreement,
    compare,
    judge,
    likelihood,
)
from middleware.cassettes.diff.rules import DiffRules, Word
from tests.cassette.deciding import said, turn


def samples(**counts: int) -> list[Word]:
    words: Sequence[Word] = ("same", "worded", "changed", "different", "broken")
    return [word for word in words for _ in range(counts.get(word, 0))]


def counted(wrong: int, of: int, before: int, of_before: int) -> float:
    """The same by counting every way in which the wrong ones can fall."""
    ways = [
        sum(each < of for each in fallen)
        for fallen in combinations(range(of + of_before), wrong + before)
    ]
    return sum(each >= wrong for each in ways) / len(ways)


@pytest.mark.parametrize(
    "figures", [(0, 5, 0, 5), (1, 1, 0, 1), (5, 5, 0, 5), (4, 5, 1, 5), (3, 4, 2, 7), (2, 6, 5, 5)]
)
def test_likelihood_is_the_share_of_all_ways(figures: tuple[int, int, int, int]) -> None:
    assert likelihood(*figures) == pytest.approx(counted(*figures), rel=1e-12)


# New samples, old samples, what the turn is held to be and what is said of it.
JUDGED: Sequence[tuple[list[Word], list[Word], Judged]] = (
    (samples(same=1), [], Judged("same")),
    (samples(same=4, different=1), [], Judged("different")),
    (samples(worded=5), samples(same=5), Judged("worded")),
    (samples(same=5, different=5), samples(same=5, different=5), Judged("same", NOISE)),
    (samples(different=10), samples(same=5, different=5), Judged("different")),
    (samples(different=10), samples(same=1, different=9), Judged("same", NOISE)),
    (samples(same=6, different=4), samples(same=10), Judged("different")),
    (samples(same=7, different=3), samples(same=10), Judged("same", NOISE)),
    # As often not as recorded, but now in a worse way; and the worse way seldom enough.
    (samples(broken=10), samples(changed=10), Judged("broken")),
    (samples(changed=9, broken=1), samples(same=10), Judged("changed", NOISE)),
    (samples(same=3, changed=7), samples(different=10), Judged("same", NOISE)),
    (samples(different=5), samples(same=5), Judged("different")),
    (samples(different=4), samples(same=4), Judged("different", TOO_FEW)),
    (samples(different=3), samples(different=3), Judged("same", TOO_FEW)),
    (samples(different=9), samples(same=4), Judged("different", TOO_FEW)),
    (samples(same=3), samples(different=3), Judged("same")),
)


@pytest.mark.parametrize(("new", "old", "expected"), JUDGED)
def test_only_what_is_beyond_chance_counts(
    new: list[Word], old: list[Word], expected: Judged
) -> None:
    assert judge(new, old) == expected


def test_agreement_is_about_decisions() -> None:
    assert agreement(samples(same=2, worded=2, changed=1)) == "4/5"


def asked(number: int, text: str, answer: str) -> CassetteTurn:
    return turn(number, said(answer), messages=[{"role": "user", "content": text}])


def test_turns_stand_beside_those_that_were_asked_the_same() -> None:
    old = [asked(1, "a", "1"), asked(2, "b", "2"), asked(3, "a", "3"), asked(4, "c", "4")]
    new = [asked(1, "b", "2"), asked(2, "x", "?"), asked(3, "a", "1"), asked(4, "a", "3")]
    found = list(compare(old, new, lambda one: str(one.body["messages"]), DiffRules()))
    assert [(each.turn, each.verdict.word, each.note) for each in found] == [
        (1, "same", ""),
        (2, "same", ""),
        (3, "same", ""),
        (4, "worded", "compared with turn 2, whose ask differs too"),
    ]


def test_turns_that_only_one_side_has_are_another_decision() -> None:
    one, two = [asked(1, "a", "1")], [asked(1, "a", "1"), asked(2, "b", "2")]
    for old, new, missing, note in (
        (two, one, 2, "not in the new cassette"),
        (one, two, None, "turn 2 of the new cassette only"),
    ):
        same, other = compare(old, new, lambda one: str(one.body["messages"]), DiffRules())
        assert same.verdict.word == "same"
        assert (other.turn, other.counted, other.note) == (missing, "different", note)
