"""The file itself: whether it changed, and what stands in it that nothing can carry."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from middleware.config.shape import Stamp

_DEEPEST = 32
_LARGEST = 1 << 63


def stamp(path: str | Path) -> Stamp:
    """What differs if the file was written or put in the place of another."""
    try:
        found = os.stat(path)
    except OSError:  # between two files, for an editor
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def unreadable(found: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """What neither JSON nor a file of ours can hold: its key, and why."""
    left: list[tuple[tuple[str, ...], int, Any]] = [((), 0, found)]
    while left:
        path, depth, value = left.pop()
        if depth > _DEEPEST:
            yield path[:3], f"is nested deeper than {_DEEPEST} levels."
        elif isinstance(value, dict):
            left += (((*path, name), depth + 1, one) for name, one in value.items())
        elif isinstance(value, list):
            left += ((path, depth + 1, one) for one in value)
        elif isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
            yield path, "is a number of more than 64 bits, which TOML does not have."
