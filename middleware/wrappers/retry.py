"""Asking again: one layer retries, and only before the upstream's first event.

What was begun may have been billed, and may have been read. Emulation holds the beginnings of
answers back, so it names what broke after it as `begun`; and what it asks on its own account behind
a first answer (a faulty call, a decision's answer) has a `Retry` of its own, as nobody outside may
repeat what came before.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from adapters.errors import GatewayError
from adapters.protocol import ChatRequest, Events
from middleware.wrappers.base import Wrapper

_LONGEST_PAUSE = 5.0
LONGEST_FAILING = 5.0
"""Seconds attempts may take to fail and be made again: what works for longer before it gives up
would be paid again, and the client is better served elsewhere.
"""
_LONGEST_WAIT = 10.0
"""Seconds for all pauses of a request together; an upstream that asks for more is passed on."""


@dataclass(slots=True)
class Budget:
    """How many requests to one upstream may be repeating themselves at the same time.

    A fifth of those at work, so that retries cannot pile up on an upstream that fails for everyone,
    and ten in any case. Shared by the models of an upstream.
    """

    SHARE: ClassVar[float] = 0.2
    LEAST: ClassVar[int] = 10
    at_work: int = 0
    repeating: int = 0

    def allows(self) -> bool:
        return self.repeating < max(self.LEAST, self.SHARE * self.at_work)


WaitOrRaise = Callable[[GatewayError, "Attempts", ChatRequest], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Retry(Wrapper):
    """Asks the same upstream again when that may help."""

    budget: Budget
    times: int = 2
    total: float = 600
    """Seconds for all attempts together."""
    first_pause: float = 0.5
    failing: float = LONGEST_FAILING
    wait_or_raise: WaitOrRaise | None = None
    """Decides instead, where nothing may be waited for."""

    async def stream(self, request: ChatRequest) -> Events:
        now = (request.call.now or asyncio.get_running_loop().time)()
        attempts: Attempts | None = None
        self.budget.at_work += 1
        opened = False
        try:
            while True:
                events = self.inner.stream(request)
                try:
                    async for batch in events:
                        opened = True
                        yield batch
                    return
                except GatewayError as error:
                    if opened:
                        raise
                    attempts = attempts or self._attempts(request, now)
                    await (self.wait_or_raise or self._wait_or_raise)(error, attempts, request)
                finally:
                    await events.aclose()
                request = replace(request, call=replace(request.call, deadline=attempts.end))
        finally:
            self.budget.at_work -= 1
            self.budget.repeating -= attempts is not None and attempts.repeated > 0

    def _attempts(self, request: ChatRequest, began: float) -> Attempts:
        end = began + self.total
        return Attempts(min(end, request.call.deadline or end), began + self.failing)

    async def _wait_or_raise(
        self, error: GatewayError, attempts: Attempts, _request: ChatRequest
    ) -> None:
        """Raise the error unless asking again may help; then pause before it."""
        if error.again != "same" or error.begun:
            raise error
        pause = pause_before(error, attempts.repeated, self.first_pause)
        allowed = attempts.repeated > 0 or self.budget.allows()
        if attempts.repeated >= self.times or not allowed or not attempts.may_wait(pause):
            # Told with `x-should-retry: false`: the client's own retries would multiply ours.
            error.again = "elsewhere"
            raise error
        self.budget.repeating += attempts.repeated == 0
        attempts.repeated += 1
        await attempts.pause(pause)


def pause_before(error: GatewayError, repeated: int, first_pause: float = 0.5) -> float:
    """Exponential with full jitter, or what the upstream asked for if that is longer."""
    own = random.uniform(0, min(_LONGEST_PAUSE, first_pause * 2**repeated))
    if not error.retry_after:
        return own
    try:
        return max(float(error.retry_after), own)
    except ValueError:  # a date: not worth computing, the client is told instead
        return math.inf


@dataclass(slots=True)
class Attempts:
    """What one request has spent on asking again."""

    end: float
    """When all attempts must be over."""
    quick_until: float
    """When a failure comes too late to be followed by another attempt; pauses do not count."""
    repeated: int = 0
    waited: float = 0.0

    def may_wait(self, pause: float) -> bool:
        return self.has_time(pause) and asyncio.get_running_loop().time() < self.quick_until

    def has_time(self, pause: float) -> bool:
        in_time = asyncio.get_running_loop().time() + pause < self.end
        return in_time and self.waited + pause <= _LONGEST_WAIT

    async def pause(self, seconds: float) -> None:
        self.waited += seconds
        self.quick_until += seconds
        await asyncio.sleep(seconds)
