"""What differs between two decisions, and what may: `ignore`, `near` and `text` of `diff:`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

from middleware.cassettes.errors import UnreadableCassette
from middleware.cassettes.match import NOTHING, path_text, unequal
from middleware.cassettes.match.values import normal
from middleware.cassettes.schema import fitting

Word = Literal["same", "worded", "changed", "different", "broken"]
WORDS: Sequence[Word] = get_args(Word)
"""The mildest first."""


_PATHS: Mapping[str, Any] = {"type": "array", "items": {"type": "string", "pattern": r"^[^$.\[]"}}
_DISTANCES: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": "number", "minimum": 0},
}
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"ignore": _PATHS, "near": _DISTANCES, "text": _PATHS},
    "additionalProperties": False,
}
_EXAMPLE = "{ignore: [get_weather.units], near: {'*.price': 0.01}, text: ['answer.items[0].name']}"


@dataclass(frozen=True, slots=True)
class DiffRules:
    """A path holds for the value it names and for all within that value; `*` is any one step."""

    ignore: Iterable[str] = ()
    near: Mapping[str, float] = field(default_factory=dict)
    """Of numbers, how far apart they may be."""
    text: Iterable[str] = ()
    """Texts that may be worded freely."""

    def ignores(self, path: str) -> bool:
        return _named(self.ignore, path)

    def tolerance(self, path: str) -> float:
        return max((most for rule, most in self.near.items() if _named([rule], path)), default=0)

    def frees(self, path: str) -> bool:
        return _named(self.text, path)

    def joined(self, more: DiffRules) -> DiffRules:
        near = {**self.near, **more.near}
        return DiffRules((*self.ignore, *more.ignore), near, (*self.text, *more.text))


def read_diff_rules(found: Any, where: str) -> DiffRules:
    """Read them, or raise an `UnreadableCassette` that names the mistake."""
    try:
        return DiffRules(**fitting(found, _SCHEMA))
    except ValueError as error:
        raise UnreadableCassette(where, f"{error}. Rules are such as {_EXAMPLE}.") from None


def _named(rules: Iterable[str], path: str) -> bool:
    return any(_pattern(rule).match(path) for rule in rules)


@lru_cache(maxsize=256)
def _pattern(rule: str) -> re.Pattern[str]:
    return re.compile(re.escape(rule).replace(r"\*", r"[^.\[\]]+") + r"(?=[.\[]|\Z)")


class DecisionChange(NamedTuple):
    """One thing that is not as it was recorded."""

    word: Word
    """What the turn is called for it, if nothing is worse."""
    path: str
    recorded: Any = NOTHING
    now: Any = NOTHING
    why: str = ""
    """What a schema has against it."""

    @property
    def change(self) -> str:
        if self.recorded is NOTHING:
            return "added"
        return "removed" if self.now is NOTHING else "changed"


def worst(words: Iterable[Word]) -> Word:
    return max(words, key=WORDS.index, default="same")


def differences(path: str, old: Any, new: Any, rules: DiffRules) -> Iterator[DecisionChange]:
    for steps, was, is_now in unequal(normal(old), normal(new)):
        at = path_text((path, *steps))
        if not rules.ignores(at) and not _is_near(was, is_now, rules.tolerance(at)):
            texts = isinstance(was, str) and isinstance(is_now, str)
            yield DecisionChange(
                "worded" if texts and rules.frees(at) else "changed", at, was, is_now
            )


def _is_near(old: object, new: object, tolerance: float) -> bool:
    if not tolerance or not {type(old), type(new)} <= {int, float}:
        return False
    # By their digits, not their bits: 1.1 is not more than 0.1 away from 1.
    return abs(Decimal(str(old)) - Decimal(str(new))) <= Decimal(str(tolerance))
