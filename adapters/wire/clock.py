"""How long an exchange waits for an upstream's next bytes."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

from adapters.protocol import Event, ReasoningDelta, ToolCallDelta, ToolCallStart
from adapters.wire.http import Timeouts

_AFTER_REASON = 2.0
"""Seconds an upstream has for its usage once it has said why it stopped."""
_PINGS_FOR = 5
"""Times the wait for a first event, while only pings come: with the usual 60 s that is `content`,
and where somebody is less patient it is less in proportion.
"""
_BLOCK = frozenset({ReasoningDelta, ToolCallStart, ToolCallDelta})


class Clock:
    """How long to wait for the next bytes, from what was heard so far."""

    def __init__(self, timeouts: Timeouts, deadline: float | None) -> None:
        self._now = asyncio.get_running_loop().time
        self._timeouts = timeouts
        self.alive = False
        """Something came, if only a ping: it is at work, and `content` bounds how long."""
        start = self._now()
        self._end = min(start + timeouts.total, deadline or math.inf)
        self._first_event = start + timeouts.first_event
        most = max(timeouts.first_event, timeouts.content)
        self._first_content = start + most
        self._only_pings = start + min(most, _PINGS_FOR * timeouts.first_event)
        self.whole = min(start + timeouts.plain, self._end)
        self._content_at: float | None = None
        self._in_block = False
        self._reason_at: float | None = None

    def until_headers(self, streamed: bool) -> float:
        return min(self._first_event, self._end) if streamed else self.whole

    def due(self, said: Sequence[Event], busy: bool, ending: bool = False) -> float:
        """When the next piece must be here. `said` came since this was asked last, and was passed
        on; `busy` says that a block is open, `ending` that the reason was given.
        """
        now, times = self._now(), self._timeouts
        if said:
            self._content_at = now
            self._reason_at = None  # it went on speaking behind a reason
            self._in_block = type(said[-1]) in _BLOCK
        if ending:
            return self._due_after_reason(now)
        if self._content_at is None:
            return self._due_before_content(now, busy)
        silence = times.idle_open if busy or self._in_block else times.idle
        return min(now + silence, self._content_at + times.content, self._end)

    def _due_before_content(self, now: float, busy: bool) -> float:
        if not self.alive:
            return min(self._first_event, self._end)
        silence = max(self._timeouts.first_event, self._timeouts.idle_open if busy else 0)
        most = self._first_content if busy else self._only_pings
        return min(now + silence, most, self._end)

    def _due_after_reason(self, now: float) -> float:
        if self._reason_at is None:
            self._reason_at = now
        return min(self._reason_at + _AFTER_REASON, self._end)
