"""What was refused of late, kept between requests."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RecentRefusals:
    """What was refused counts for a while; of too many the oldest is forgotten."""

    seconds: float = 300.0
    most: int = 256
    _until: dict[str | bytes, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return bool(self._until)

    def __contains__(self, refused: str | bytes) -> bool:
        return self._until.get(refused, 0.0) > time.monotonic()

    def add(self, refused: str | bytes) -> None:
        self._until.pop(refused, None)  # what is refused again is the newest
        self._until[refused] = time.monotonic() + self.seconds
        if len(self._until) > self.most:
            del self._until[next(iter(self._until))]
