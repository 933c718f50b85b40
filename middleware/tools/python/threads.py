"""Threads for functions that are not async: one a call, bounded in number and named."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from middleware.tools.foreign import Raised, attempt

_MOST = 200
_PATIENCE = 30.0
"""Seconds after which a thread that nobody waits for any more is told of."""
_Value = TypeVar("_Value")


class Threads:
    """What waits for a free one waits within its own deadline; nobody shares one."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._free = asyncio.Semaphore(_MOST)

    async def run(self, name: str, work: Callable[[], _Value]) -> _Value | Raised:
        """Run it in a thread. Whoever is cancelled leaves it behind, as no thread can be ended."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_Value | Raised] = loop.create_future()
        ended = threading.Event()

        def end(outcome: _Value | Raised) -> None:
            self._free.release()
            if not done.done():
                done.set_result(outcome)

        def begin() -> None:
            outcome = attempt(work)
            ended.set()
            with suppress(RuntimeError):  # the loop is gone
                loop.call_soon_threadsafe(end, outcome)

        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(begin,), name=f"tool {name}"[:60])
        thread.daemon = True
        thread.start()
        try:
            return await done
        except asyncio.CancelledError:
            loop.call_later(_PATIENCE, self._tell, name, ended)
            raise

    def _tell(self, name: str, ended: threading.Event) -> None:
        if not ended.is_set():
            busy = _MOST - self._free._value
            self._say(
                f"Tool '{name}' still runs {_PATIENCE:g} s after its call has ended: its thread "
                f"cannot be stopped. {busy} of {_MOST} threads for tools are at work."
            )
