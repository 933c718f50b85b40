"""Events that come together and are many: what is alike of them is written at once."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import orjson

BURST = 24
"""So many events are worth a look at which are alike: a fast upstream, or a replay."""
delta_text, delta_arguments = attrgetter("text"), attrgetter("arguments")
_GAP = orjson.Fragment(b"\0")
"""Stands between two texts, as no JSON has it."""


def surround(texts: list[str], before: bytes, behind: bytes) -> bytes:
    """A frame of each text, all of them written at once."""
    parts: list[Any] = [_GAP] * (2 * len(texts) - 1)
    parts[::2] = texts
    said = orjson.dumps(parts)[1:-1].replace(b",\0,", behind + before)
    return b"".join((before, said, behind))
