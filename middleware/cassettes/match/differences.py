"""What differs between two asks, by path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import chain, compress, count, zip_longest
from operator import ne
from typing import Any, Literal, NamedTuple

from middleware.cassettes.match.paths import Step
from middleware.cassettes.match.values import JsonValue


class Missing(Enum):
    NOTHING = "nothing"


NOTHING: Literal[Missing.NOTHING] = Missing.NOTHING
"""What stands where one side has nothing: null is something."""
Seen = JsonValue | Literal[Missing.NOTHING]
Item = tuple[int, Seen]


class Unequal(NamedTuple):
    steps: tuple[Step, ...]
    recorded: Seen
    now: Seen


def unequal(recorded: Seen, now: Seen, steps: tuple[Step, ...] = ()) -> Iterator[Unequal]:
    if recorded is now:
        return
    if isinstance(recorded, dict) and isinstance(now, dict):
        for name in recorded | now:
            old, new = recorded.get(name, NOTHING), now.get(name, NOTHING)
            yield from unequal(old, new, (*steps, name))
    elif isinstance(recorded, list) and isinstance(now, list):
        for at, old, new in aligned(_items(recorded, steps), _items(now, steps)):
            yield from unequal(old, new, (*steps, at))
    elif type(recorded) is not type(now) or recorded != now:
        yield Unequal(steps, recorded, now)


def _items(values: Iterable[JsonValue], steps: tuple[Step, ...]) -> list[Item]:
    """Each with its place; a message that does not count is None."""
    counted = enumerate(values)
    return [one for one in counted if one[1] is not None or steps != ("messages",)]


def aligned(old: Sequence[Item], new: Sequence[Item]) -> Iterator[tuple[int, Seen, Seen]]:
    """Pairs of two lists, with the place of each; one may have more somewhere."""
    tail = 0
    if len(old) != len(new):
        tail = alike_at_ends([one for _, one in old], [one for _, one in new])[1]
    ends = len(old) - tail, len(new) - tail
    middle = zip_longest(old[: ends[0]], new[: ends[1]], fillvalue=(-1, NOTHING))
    for (before, was), (at, is_now) in chain(
        middle, zip(old[ends[0] :], new[ends[1] :], strict=True)
    ):
        yield before if at < 0 else at, was, is_now


def alike_at_ends(old: Sequence[Any], new: Sequence[Any]) -> tuple[int, int]:
    """How much is equal at the beginning, and of the rest at the end."""
    start = common(old, new)
    return start, min(common(old[::-1], new[::-1]), len(old) - start, len(new) - start)


def common(old: Sequence[Any], new: Sequence[Any]) -> int:
    """How much is equal from the first on."""
    return next(compress(count(), map(ne, old, new)), min(len(old), len(new)))
