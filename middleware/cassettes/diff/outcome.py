"""What comparing came to, turn by turn: of samples, and of two cassettes."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain
from math import comb
from typing import NamedTuple

from middleware.cassettes.cassette import CassetteTurn
from middleware.cassettes.diff.rules import WORDS, DiffRules, Word, worst
from middleware.cassettes.diff.verdict import Verdict, verdict

_UNANSWERED = 6
_ENOUGH, _CHANCE = 5, 0.05
NOISE = "within the old model's own noise"
TOO_FEW = f"too few to tell from the old model's own noise: ask {_ENOUGH} times or more (-n)"


class TurnDiff(NamedTuple):
    turn: int | None
    """None: only the new cassette has it."""
    verdict: Verdict
    """The worst that was seen."""
    counted: Word
    """What it is held to be."""
    agreement: str = ""
    baseline: str = ""
    note: str = ""


class CassetteDiff(NamedTuple):
    old: str
    new: str
    turns: Sequence[TurnDiff]
    fail_on: Word = "different"
    unanswered: bool = False
    """More questions failed than may."""

    @property
    def worst(self) -> Word:
        return worst(each.counted for each in self.turns)

    @property
    def exit(self) -> int:
        return _UNANSWERED if self.unanswered else int(self.fails(self.worst))

    def fails(self, word: Word) -> bool:
        return WORDS.index(word) >= WORDS.index(self.fail_on)

    def counts(self) -> str:
        """`9 turns: 7 same, 2 changed`."""
        found = Counter(each.counted for each in self.turns)
        said = ", ".join(f"{found[word]} {word}" for word in WORDS if found[word])
        return f"{len(self.turns)} turn{'s' * (len(self.turns) != 1)}: {said}"


def compare(
    old: Sequence[CassetteTurn],
    new: Sequence[CassetteTurn],
    key: Callable[[CassetteTurn], Hashable],
    rules: DiffRules,
) -> Iterator[TurnDiff]:
    """Compare turns whose asks have one key, in their order; what is left by its position."""
    waiting: defaultdict[Hashable, deque[CassetteTurn]] = defaultdict(deque)
    for turn in new:
        waiting[key(turn)].append(turn)
    pairs = [(turn, row.popleft() if (row := waiting[key(turn)]) else None) for turn in old]
    left = iter(sorted(chain(*waiting.values()), key=lambda turn: turn.number))
    for turn, alike in pairs:
        if (beside := alike or next(left, None)) is None:
            yield _alone(turn.number, "not in the new cassette")
            continue
        found = verdict(turn.body, turn.answer, beside.answer, rules)
        note = "" if alike else f"compared with turn {beside.number}, whose ask differs too"
        yield TurnDiff(turn.number, found, found.word, note=note)
    for turn in left:
        yield _alone(None, f"turn {turn.number} of the new cassette only")


def _alone(number: int | None, note: str) -> TurnDiff:
    return TurnDiff(number, Verdict("different"), "different", note=note)


class Judged(NamedTuple):
    """What a turn is held to be by all its samples."""

    word: Word
    note: str = ""


def judge(new: Sequence[Word], old: Sequence[Word]) -> Judged:
    """Weigh samples of the new model, and of the old one if it was asked again.

    Each word is weighed: a model that always falls otherwise may now do so in a worse way.
    """
    found = worst(new)
    if not old or found in ("same", "worded"):
        return Judged(found)
    few = min(len(new), len(old)) < _ENOUGH
    word: Word = next((word for word in reversed(WORDS) if _is_worse(word, new, old, few)), "same")
    return Judged(word, TOO_FEW if few else "" if word == found else NOISE)


def _is_worse(word: Word, new: Sequence[Word], old: Sequence[Word], few: bool) -> bool:
    wrong, before = _at_least(word, new), _at_least(word, old)
    more = wrong * len(old) > before * len(new)
    return more and (few or likelihood(wrong, len(new), before, len(old)) < _CHANCE)


def likelihood(wrong: int, of: int, before: int, of_before: int) -> float:
    """How likely so many of all wrong ones fall to the new side, or more, if both are alike:
    Fisher's exact test, one-sided.
    """
    every = wrong + before
    right = of + of_before - every
    cases = range(wrong, min(every, of) + 1)
    return sum(comb(every, at) * comb(right, of - at) for at in cases) / comb(every + right, of)


def agreement(samples: Sequence[Word]) -> str:
    """How many made the recorded decision, whatever their words."""
    return f"{len(samples) - _at_least('changed', samples)}/{len(samples)}"


def _at_least(word: Word, samples: Sequence[Word]) -> int:
    return sum(WORDS.index(each) >= WORDS.index(word) for each in samples)
