"""How time is measured, in proportion to the length of what was read."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

LONGEST_HOLD = 0.25
"""Seconds of CPU that may go by in one piece."""
_NOISE = 0.04
Work = Callable[[], Any]


def seconds(work: Work, tries: int = 2) -> float:
    """The CPU time of the quickest try."""
    return min(_once(work) for _ in range(tries))


def is_within(limit: float, work: Work) -> bool:
    """Whether one of three tries takes less than `limit` seconds of CPU: what else a machine does
    makes single ones longer, and none shorter.
    """
    return any(not is_long(_once(work), limit) for _ in range(3))


def longest_of(steps: Iterable[Work]) -> float:
    """The CPU time of the longest of several steps."""
    return max(map(_once, steps))


def seconds_unless_long(work: Work, beside: float = 0) -> float:
    """The CPU time of a try; of the quickest of five where the first ones, with `beside`, are long:
    what else a machine does makes single ones longer, and none shorter.
    """
    least, tries = _once(work), 1
    while tries < 5 and is_long(least + beside):
        least, tries = min(least, _once(work)), tries + 1
    return least


@contextmanager
def without_collector() -> Iterator[None]:
    """Python's own looking for garbage takes the longer the more a process holds: after ten
    thousand tests, half a second in the middle of anything.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _once(work: Work) -> float:
    with without_collector():
        begun = time.thread_time()
        work()
        return time.thread_time() - begun


def is_long(held: float, longest: float = LONGEST_HOLD) -> bool:
    """Whether it took longer than it may, on a machine as quick as this was written on.

    What else runs slows a core down while it runs, as caches are shared: the slowest of three
    counts, and that more wants to run than there are cores.
    """
    if held <= longest:
        return False
    crowd = os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 1
    now = max(_once(_reference) for _ in range(3)) / 0.02
    return held > longest * min(4, max(now, min(2, crowd)))


def _reference() -> None:
    """What takes 20 ms of CPU there while nothing else runs."""
    made: dict[str, Any] = {}
    for at in range(40_000):
        made[str(at)] = [at, {"a": at}]


def require_linear(read: Callable[[Any], Any], grow: Callable[[int], Any], size: int) -> None:
    """A reader takes not much more than twice as long for what is twice as large."""
    for part in (64, 16, 4):  # so that what is worse fails soon
        begun = _once(partial(read, grow(size // part)))
        assert not is_long(begun), f"{begun:.2f} s for one part of {part}"
    small, large = partial(read, grow(size // 2)), partial(read, grow(size))
    half = whole = 0.0
    for _ in range(5):  # one behind the other, as what else a machine does comes and goes
        half, whole = _once(small), _once(large)
        if not is_long(whole) and whole <= 3 * half + _NOISE:
            return
    raise AssertionError(f"{half:.4f} s, then {whole:.4f} s")
