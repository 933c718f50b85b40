"""What was worked out from bytes, remembered within a bound in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
V = TypeVar("V")
Made = Callable[Concatenate[bytes, P], V]


def bounded(most_bytes: int) -> Callable[[Made[P, V]], Made[P, V]]:
    """Remember what a pure function made of its first argument; the longest unused goes first.

    All keys together have that many bytes, and one alone a quarter of it: no request drives out
    what all others need. For the event loop's thread only.
    """

    def remembering(make: Made[P, V]) -> Made[P, V]:
        kept: OrderedDict[tuple[bytes, tuple[object, ...]], V] = OrderedDict()
        size = 0

        @wraps(make)
        def remembered(key: bytes, /, *args: P.args, **named: P.kwargs) -> V:
            nonlocal size
            place = (key, (*args, *named.items()))
            if place in kept:
                kept.move_to_end(place)
                return kept[place]
            made = make(key, *args, **named)
            if len(key) <= most_bytes // 4:
                kept[place] = made
                size += len(key)
            while size > most_bytes:
                (oldest, _), _ = kept.popitem(last=False)
                size -= len(oldest)
            return made

        return remembered

    return remembering
