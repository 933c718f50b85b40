"""Logs what blocked the event loop: meanwhile nobody else is answered.

A thread asks the loop for a sign of life, many times a second. Where none comes in time, it looks
at what the loop's thread is doing. Requests pay nothing for it.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

from adapters.protocol import Json
from middleware.server.log import Log
from middleware.server.visits import Visit

LONGEST = 0.1
"""Seconds; whatever blocks the loop for longer is logged."""
_PERIOD = 0.04
_OURS = ("adapters.", "middleware.")


class Watchdog:
    """Watches one loop from `start` to `stop`, both called in it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        watched = (asyncio.get_running_loop(), threading.get_ident())
        self._thread = threading.Thread(
            target=self._watch, args=watched, name="watchdog", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(LONGEST)

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        try:
            while not self._over.wait(_PERIOD):
                begun, alive = time.monotonic(), threading.Event()
                loop.call_soon_threadsafe(alive.set)
                if alive.wait(LONGEST - _PERIOD):
                    continue
                seen = _seen(sys._current_frames().get(thread))
                while not alive.wait(_PERIOD) and not self._over.is_set():
                    pass
                milliseconds = round((time.monotonic() - begun) * 1000)
                line: Json = {"loop_blocked_ms": milliseconds, **seen}
                loop.call_soon_threadsafe(self._log.write, line)
        except RuntimeError:
            pass  # the loop is closed: there is nothing left to watch


def _seen(innermost: FrameType | None) -> Json:
    """What a thread is at: the innermost line of ours, and the request it is for."""
    frames = list(_outwards(innermost))
    ours = [frame for frame in frames if _module(frame).startswith(_OURS)]
    told: Json = {"at": _place((ours or frames)[0])} if frames else {}
    for frame in ours:
        if isinstance(visit := frame.f_locals.get("visit"), Visit):
            told["id"] = visit.id
    return told


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _place(frame: FrameType) -> str:
    path = _module(frame).replace(".", "/")
    return f"{path}.py:{frame.f_lineno} {frame.f_code.co_qualname}"
