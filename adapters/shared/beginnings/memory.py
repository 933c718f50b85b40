"""Writers of conversations, found again by their messages."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from itertools import accumulate
from operator import is_
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import orjson

from adapters.protocol import CARRIER, Carried, Json
from adapters.shared.marks import room_of_values

_FEWEST = 8
"""Messages: fewer are written sooner than they are looked for."""
_LAST = 24
"""Messages of the end, among which cache breakpoints are looked for."""
_SYSTEM = frozenset(("system", "developer"))
_CACHING = frozenset(("cache_control", "prompt_cache_breakpoint"))
_MOST_BYTES = 32 << 20
_TIMES = 3
"""Bytes that are held for each byte of JSON: the messages as objects, and what was made of them."""
_EACH = 500
"""Bytes beyond that for each message."""


class Writer(Protocol):
    """Takes a conversation, one message after the other."""

    def add(self, message: Json, /) -> None: ...

    def copy(self) -> Self:
        """One that stands where this one stands, and goes on without it."""


W = TypeVar("W", bound=Writer)


class _Kept(NamedTuple):
    context: Hashable
    messages: tuple[Json, ...]
    """They are held, so that no other object gets the identity of one."""
    writer: Any
    size: int

    def is_of(self, context: Hashable, messages: Sequence[Json]) -> bool:
        same = all(map(is_, self.messages, messages))
        return same and len(self.messages) <= len(messages) and self.context == context


class Beginnings:
    """A memory of writers, bounded in bytes; the longest unused goes first.

    Of each conversation it has the longest beginning alone. For the event loop's thread only.
    """

    def __init__(self, most_bytes: int) -> None:
        self.size = 0
        self._most = most_bytes
        self._kept: OrderedDict[int, _Kept] = OrderedDict()

    def writer(self, messages: tuple[Json, ...], begin: Callable[[], W], context: Hashable) -> W:
        """A writer that has taken all messages.

        It is remembered as it stands before the last one, to which some clients add what they leave
        out in the next turn, and before the cache breakpoints of the end, which they let move on.
        """
        # The sum finds a beginning, and whether it is the same one is looked at then.
        marks = [*accumulate(map(id, messages), initial=hash(context))]
        found = self._longest(marks, messages, context)
        behind, before = (len(found.messages), found.size) if found else (0, 0)
        last = range(max(behind, len(messages) - _LAST), len(messages) - 1)
        until = next((at for at in last if _is_marked(messages[at])), len(messages) - 1)
        # One alone has a quarter at most: it drives out nothing that all others need.
        if (
            until <= max(behind, _FEWEST - 1)
            or (size := before + _weight(messages[behind:until])) > self._most // 4
        ):
            return _written(found.writer.copy() if found else begin(), messages[behind:])
        self._forget(marks[behind])  # what is kept instead goes on from it
        writer = _written(found.writer if found else begin(), messages[behind:until])
        self._keep(marks[until], _Kept(context, messages[:until], writer, size))
        return _written(writer.copy(), messages[until:])

    def _longest(
        self, marks: Sequence[int], messages: Sequence[Json], context: Hashable
    ) -> _Kept | None:
        for count in range(len(messages), _FEWEST - 1, -1):
            kept = self._kept.get(marks[count])
            if kept is not None and kept.is_of(context, messages):
                self._kept.move_to_end(marks[count])
                return kept
        return None

    def _keep(self, mark: int, kept: _Kept) -> None:
        self._forget(mark)
        self._kept[mark] = kept
        self.size += kept.size
        while self.size > self._most:
            self._forget(next(iter(self._kept)))

    def _forget(self, mark: int) -> None:
        if (kept := self._kept.pop(mark, None)) is not None:
            self.size -= kept.size


def _written(writer: W, messages: Sequence[Json]) -> W:
    add = writer.add
    for message in messages:
        add(message)
    return writer


def _is_marked(message: Json) -> bool:
    if message.get("role") in _SYSTEM:  # what is marked there stays so
        return False
    said = [message]
    if type(carried := message.get(CARRIER)) is Carried and isinstance(carried.value, tuple):
        said.append(carried.value[0])
    for one in [*said]:
        content = one.get("content")
        said += content if isinstance(content, list) else ()
    return not all(map(_CACHING.isdisjoint, said))


def _weight(messages: Sequence[Json]) -> int:
    try:
        text = orjson.dumps(messages, default=str) if messages else b""
        return _TIMES * len(text) + room_of_values(text) + _EACH * len(messages)
    except orjson.JSONEncodeError:  # no JSON of any upstream either
        return _MOST_BYTES


@cache
def _beginnings() -> Beginnings:
    return Beginnings(_MOST_BYTES)


def writer_of(
    messages: Sequence[Json], begin: Callable[[], W], context: Hashable, kept: bool = True
) -> W:
    """A writer that has taken all messages; `context` is all that `begin` makes it of.

    Without `kept` nothing is looked for, and nothing remembered.
    """
    if kept and len(messages) >= _FEWEST:
        return _beginnings().writer(tuple(messages), begin, context)
    return _written(begin(), messages)
