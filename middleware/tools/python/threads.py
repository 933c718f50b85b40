"""Threads for functions that are not async: one a call, named, bounded for all tables together."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from middleware.tools.foreign import Raised, attempt
from middleware.tools.tool import CallFailed

_MOST = 256
_PATIENCE = 30.0
"""Seconds after which a thread that nobody waits for any more is told of."""
_Value = TypeVar("_Value")


class Threads:
    """All that tools may have; each table has a share, so that it cannot take those of others."""

    def __init__(self, say: Callable[[str], None], most: int = _MOST) -> None:
        self.say = say
        self.most = most
        self.busy = 0
        self.free = asyncio.Semaphore(most)

    def share(self) -> ThreadShare:
        half = max(1, self.most // 2)
        return ThreadShare(self, half, asyncio.Semaphore(half))


@dataclass
class ThreadShare:
    """What one table may have of them. What waits for a free one waits within its own deadline."""

    threads: Threads
    most: int
    _free: asyncio.Semaphore
    _left: set[threading.Thread] = field(default_factory=set)
    """Those that nobody waits for any more."""

    async def run(self, name: str, work: Callable[[], _Value]) -> _Value | Raised:
        """Run it in a thread. Whoever is cancelled leaves it behind, as no thread can be ended."""
        await self._taken()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_Value | Raised] = loop.create_future()

        def end(outcome: _Value | Raised) -> None:
            self._left.discard(thread)
            self._give_back()
            if not done.done():
                done.set_result(outcome)

        def begin() -> None:
            outcome = attempt(work)
            with suppress(RuntimeError):  # the loop is gone
                loop.call_soon_threadsafe(end, outcome)

        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(begin,), name=f"tool {name}"[:60])
        thread.daemon = True
        started = attempt(thread.start)
        if isinstance(started, Raised):  # the machine has no more of them
            end(started)
        try:
            return await done
        except asyncio.CancelledError:
            self._left.add(thread)
            loop.call_later(_PATIENCE, self._tell, name, thread)
            raise

    async def _taken(self) -> None:
        if len(self._left) >= self.most:
            told = f"no thread is free: {self.most} calls of its table's tools have never ended"
            raise CallFailed(told)
        await self._free.acquire()
        try:
            await self.threads.free.acquire()
        except asyncio.CancelledError:
            self._free.release()
            raise
        self.threads.busy += 1

    def _give_back(self) -> None:
        self.threads.busy -= 1
        self.threads.free.release()
        self._free.release()

    def _tell(self, name: str, thread: threading.Thread) -> None:
        if thread in self._left:
            self.threads.say(
                f"Tool '{name}' still runs {_PATIENCE:g} s after its call has ended: its thread "
                f"cannot be stopped. {self.threads.busy} of {self.threads.most} threads for tools "
                "are at work."
            )
