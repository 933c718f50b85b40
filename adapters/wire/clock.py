"""How long an exchange waits for an upstream's next bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

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

    def __init__(
        self,
        timeouts: Timeouts,
        deadline: float | None,
        now: Callable[[], float] | None = None,
    ) -> None:
        self._now = now or asyncio.get_running_loop().time
        self._timeouts = timeouts
        self.alive = False
        """Something came, if only a ping: it is at work, and `content` bounds how long."""
        start = self._start = self._now()
        end, plain = start + timeouts.total, start + timeouts.plain
        if deadline and deadline < end:
            end = deadline
        self._end = end
        self.whole = plain if plain < end else end
        """When a plain answer must be here."""
        # No silence may be longer than that of content, and nothing than the whole.
        self._idle = min(timeouts.idle, timeouts.content)
        self._idle_open = min(timeouts.idle_open, timeouts.content)
        self._content_at: float | None = None
        self._in_block = False
        self._reason_at: float | None = None

    def until_headers(self, streamed: bool) -> float:
        return min(self._start + self._timeouts.first_event, self._end) if streamed else self.whole

    def due(self, said: Sequence[Event], busy: bool, ending: bool = False) -> float:
        """When the next piece must be here. `said` came since this was asked last, and was passed
        on; `busy` says that a block is open, `ending` that the reason was given.
        """
        now = self._now()
        if said:
            self._content_at = now
            self._in_block = type(said[-1]) in _BLOCK
        if ending:
            return self._due_after_reason(now, bool(said))
        if self._content_at is None:
            return self._due_before_content(now, busy)
        due = now + (self._idle_open if busy or self._in_block else self._idle)
        if not said:
            due = min(due, self._content_at + self._timeouts.content)
        # No `min`, which is half of what this would cost for each piece.
        return due if due < self._end else self._end

    def _due_before_content(self, now: float, busy: bool) -> float:
        times, start = self._timeouts, self._start
        if not self.alive:
            return min(start + times.first_event, self._end)
        silence = max(times.first_event, times.idle_open if busy else 0)
        most = max(times.first_event, times.content)
        if not busy:
            most = min(most, _PINGS_FOR * times.first_event)
        return min(now + silence, start + most, self._end)

    def _due_after_reason(self, now: float, speaks: bool) -> float:
        """It has its time again while it goes on speaking."""
        if speaks or self._reason_at is None:
            self._reason_at = now
        return min(self._reason_at + _AFTER_REASON, self._end)
