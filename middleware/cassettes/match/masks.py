"""Values that may differ, found in an ask: each becomes a mark, equal ones the same mark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from middleware.cassettes.match.paths import Step, admits, steps_of
from middleware.cassettes.match.patterns import SECRET, pattern_of
from middleware.cassettes.match.rules import Mask
from middleware.cassettes.match.values import Form, JsonValue

SECRETS = Mask("*", SECRET)
"""What stands in the place of secrets, everywhere: a recorder knows more of them by name."""
_LONGEST = 1 << 18
"""Characters of one text in which values are looked for."""
_Ways = tuple[tuple[Mask, tuple[Step, ...]], ...]
"""Masks, and what is left of the path to each; nothing is left within what it means."""


class MaskedValue(NamedTuple):
    what: str
    text: str
    carry: bool


def masked(counted: Form, masks: Iterable[Mask]) -> tuple[Form, tuple[MaskedValue, ...]]:
    """The form without those values, and they in the order in which each first stands in it."""
    masking = _Masking()
    form = masking.members(counted, tuple((mask, _steps(mask.at)) for mask in masks))
    return form, tuple(MaskedValue(*one, one in masking.carried) for one in masking.found)


def _steps(at: str) -> tuple[Step, ...]:
    """As forms have it: no `function` between a tool and what it is, no developer."""
    steps = steps_of(at)
    if steps[0] == "tools" and steps[2:3] in (("function",), ("custom",)):
        steps = (*steps[:2], *steps[3:])
    return tuple(("role", "system") if one == ("role", "developer") else one for one in steps)


@lru_cache(maxsize=128)
def _spans(what: str, text: str) -> tuple[tuple[int, int], ...]:
    """Remembered: prompts come again with every ask."""
    found = (one.span() for one in pattern_of(what).finditer(text, 0, _LONGEST))
    return tuple((start, end) for start, end in found if start < end)


@dataclass(slots=True)
class _Masking:
    found: dict[tuple[str, str], int] = field(default_factory=dict)
    """What a value is, and itself → its number."""
    carried: set[tuple[str, str]] = field(default_factory=set)

    def members(self, holder: Form, ways: _Ways) -> Form:
        """In the order of their names, which is the same on both sides."""
        return {name: self._member(name, holder[name], ways) for name in sorted(holder)}

    def _member(self, name: str | int, value: JsonValue, ways: _Ways) -> JsonValue:
        ways = tuple(
            (mask, steps[1:]) for mask, steps in ways if not steps or admits(steps[0], name, value)
        )
        if not ways:
            return value
        if isinstance(value, dict):
            return self.members(value, ways)
        if isinstance(value, list):
            return [self._member(at, one, ways) for at, one in enumerate(value)]
        return self._one(value, [mask for mask, steps in ways if not steps])

    def _one(self, value: JsonValue, masks: list[Mask]) -> JsonValue:
        if isinstance(value, str):
            return self._text(value, masks)
        numbers = [mask for mask in masks if mask.what == "number"]
        if numbers and type(value) in (int, float):
            # Another mark than a text's: "1" is no number.
            return self._mark(numbers[0], str(value)) + "\0"
        return value

    def _text(self, text: str, masks: list[Mask]) -> str:
        """Of two values that begin in one place the longer counts."""
        spans = sorted(
            (start, -end, order)
            for order, mask in enumerate(masks)
            for start, end in _spans(mask.what, text)
        )
        parts, done = [], 0
        for start, minus_end, order in spans:
            if start >= done:
                parts += [text[done:start], self._mark(masks[order], text[start:-minus_end])]
                done = -minus_end
        return "".join([*parts, text[done:]]) if parts else text

    def _mark(self, mask: Mask, text: str) -> str:
        value = (mask.what, text)
        if mask.carry:
            self.carried.add(value)
        return f"\0{mask.what}#{self.found.setdefault(value, len(self.found))}\0"
