"""What several requests keep in one turn of the loop, written as one.

Of a transaction most is its end, which takes as long for ten entries as for one. Nobody waits for
others to come: who is alone is written in the same turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from middleware.wrappers.recall.store import Entry, StoreFailure

_MOST = 1 << 20
"""Bytes from which on nothing more is put into one: the loop waits for it."""


class _Joined(NamedTuple):
    """What is to be kept, and who waits for it."""

    entries: Sequence[Entry]
    used: Sequence[bytes]
    kept: asyncio.Future[bool]


class Together:
    def __init__(self, write: Callable[[Sequence[Entry], Sequence[bytes]], bool]) -> None:
        self._write = write
        """Writes all or nothing, and says whether it did."""
        self._joined: list[_Joined] = []

    def join(self, entries: Sequence[Entry], used: Sequence[bytes]) -> asyncio.Future[bool]:
        """Whether it was written with the others; if not, it may be without them."""
        loop = asyncio.get_running_loop()
        if not self._joined:
            loop.call_soon(self._write_next)
        joined = _Joined(entries, used, loop.create_future())
        self._joined.append(joined)
        return joined.kept

    def _write_next(self) -> None:
        group = [*_modest(self._joined)]
        del self._joined[: len(group)]
        if self._joined:
            asyncio.get_running_loop().call_soon(self._write_next)
        outcome: bool | StoreFailure = False
        try:
            outcome = self._write(*_parts_of(group))
        except StoreFailure as failure:
            if len(group) == 1:  # of several it shows whose fault it is where each is alone
                outcome = failure
        finally:
            for one in group:
                _tell(one.kept, outcome)


def _modest(joined: Sequence[_Joined]) -> Iterator[_Joined]:
    """As many as are written at once."""
    size = 0
    for one in joined:
        yield one
        size += sum(len(value) for _, value in one.entries)
        if size > _MOST:
            return


def _parts_of(group: Sequence[_Joined]) -> tuple[list[Entry], list[bytes]]:
    entries = [entry for one in group for entry in one.entries]
    return entries, [key for one in group for key in one.used]


def _tell(waiting: asyncio.Future[bool], outcome: bool | StoreFailure) -> None:
    if waiting.done():
        return  # its request was cut off
    if isinstance(outcome, StoreFailure):
        waiting.set_exception(outcome)
    else:
        waiting.set_result(outcome)
