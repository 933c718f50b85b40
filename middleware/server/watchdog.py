"""Logs what blocked the event loop: meanwhile nobody else is answered.

The loop notes when it will next be about, many times a second; a thread that finds it late looks
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
_LATE = LONGEST - _PERIOD
"""What began a whole period before the loop was due is late by so much."""
_LOOK = _LATE - _PERIOD
"""So late the thread looks first: once a period it is there, and what is told was seen."""
_OURS = ("adapters.", "middleware.")


class Watchdog:
    """Watches one loop from `start` to `stop`, both called in it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        """When the loop will be about, if nothing blocks it."""
        self._found: tuple[float, Json] | None = None
        """When it was due, and what it was at instead."""

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._expect(loop)
        watched = (loop, threading.get_ident())
        self._thread = threading.Thread(
            target=self._watch, args=watched, name="watchdog", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._thread is not None:
            self._thread.join(LONGEST)

    def _expect(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = time.monotonic() + _PERIOD
        self._timer = loop.call_later(_PERIOD, self._arrive, loop)

    def _arrive(self, loop: asyncio.AbstractEventLoop) -> None:
        """In the loop: it is about."""
        late = time.monotonic() - self._due
        found, self._found = self._found, None
        if late >= _LATE and found is not None and found[0] == self._due:
            self._log.write({"loop_blocked_ms": round(late * 1000), **found[1]})
        self._expect(loop)

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        """In the thread: it takes the interpreter from the loop once a period."""
        while not self._over.wait(_PERIOD) and not loop.is_closed():
            due, found = self._due, self._found
            late = time.monotonic() - due
            if late < _LOOK or (late >= LONGEST and found is not None and found[0] == due):
                continue
            self._found = due, _seen(sys._current_frames().get(thread))


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
