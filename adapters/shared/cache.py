"""What was worked out from bytes or objects, remembered within a bound in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
V = TypeVar("V")
T = TypeVar("T")
Made = Callable[Concatenate[bytes, P], V]
_NOTHING: Any = object()
_EACH = 2000
"""Bytes that an entry takes beside its text."""


def fitted(text: bytes) -> bytes:
    """The same, to be kept: what orjson wrote has room for much more, for 4 KB at the least."""
    return bytes(memoryview(text))


def bounded(most_bytes: int) -> Callable[[Made[P, V]], Made[P, V]]:
    """Remember what a pure function made of its first argument; the longest unused goes first.

    All keys together have that many bytes, with what an entry takes, and one alone a quarter of
    it: no request drives out what all others need. For the event loop's thread only.
    """

    def remembering(make: Made[P, V]) -> Made[P, V]:
        kept: OrderedDict[tuple[bytes, tuple[object, ...]], V] = OrderedDict()
        size = 0

        @wraps(make)
        def remembered(key: bytes, /, *args: P.args, **named: P.kwargs) -> V:
            nonlocal size
            place = (key, (*args, *named.items()) if named else args)
            found: V = kept.get(place, _NOTHING)
            if found is not _NOTHING:
                kept.move_to_end(place)
                return found
            made = make(key, *args, **named)
            if len(key) <= most_bytes // 4:
                kept[place] = made
                size += len(key) + _EACH
            while size > most_bytes:
                (oldest, _), _ = kept.popitem(last=False)
                size -= len(oldest) + _EACH
            return made

        return remembered

    return remembering


def by_identity(
    most_bytes: int,
) -> Callable[[Callable[[T, str], bytes]], Callable[[T, str], bytes]]:
    """Remember the bytes that a pure function made of an object and a word, for that very object.

    The objects are held, so that no other gets the identity of one. What is empty is not kept.
    """

    def remembering(make: Callable[[T, str], bytes]) -> Callable[[T, str], bytes]:
        kept: OrderedDict[tuple[int, str], tuple[T, bytes]] = OrderedDict()
        size = 0

        @wraps(make)
        def remembered(one: T, word: str, /) -> bytes:
            nonlocal size
            place = id(one), word
            if found := kept.get(place):
                kept.move_to_end(place)
                return found[1]
            if made := make(one, word):
                kept[place] = one, made
                size += len(made) + _EACH
            while size > most_bytes:
                _, (_, oldest) = kept.popitem(last=False)
                size -= len(oldest) + _EACH
            return made

        return remembered

    return remembering
