"""What was said to upstreams and what they said, kept as it was to be looked at later."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

MOST = 256 << 10
"""Bytes of an answer from which on nothing more is kept."""


@dataclass(slots=True)
class CapturedCall:
    """One call of an upstream: references to bytes that are there anyway."""

    upstream: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    proxy: str | None = field(repr=False)
    body: bytes = field(repr=False)
    began: float = field(default_factory=time.monotonic)
    answered: float | None = None
    """When its headers came."""
    ended: float | None = None
    status: int = 0
    """0: nothing was answered."""
    pieces: list[bytes] = field(default_factory=list, repr=False)
    size: int = 0

    def heard(self, piece: bytes) -> None:
        if self.size < MOST:
            self.pieces.append(piece)
        self.size += len(piece)


Capture = list[CapturedCall]
"""All calls made for one request, in their order."""
