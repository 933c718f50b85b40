"""One process that holds a model: started, asked, ended. What it does between is `worker`'s."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BufferedReader, RawIOBase
from queue import Empty, SimpleQueue
from typing import cast
from weakref import finalize

from adapters.local.worker import ASK, STOP, Frame, read, write

DIED = b"D"
"""The kind of the last frame, which the process did not write: how it ended."""

_TAKING = 30.0
"""Seconds it has to take a question; it has nothing else to do then."""
# No signal of our terminal reaches it: a session of its own, on Windows a group.
_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
# Where it crashes, no debugger is started to say where.
_QUIET: Mapping[str, str] = {"GGML_NO_BACKTRACE": "1"}


class Child:
    """Ends with whoever holds it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # llama.cpp prints whole grammars of clients there.
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={**os.environ, **_QUIET},
            start_new_session=os.name == "posix",
            creationflags=_GROUP,
        )
        self._input = cast(RawIOBase, self._process.stdin)
        self._frames: SimpleQueue[Frame] = SimpleQueue()
        hearing = (self._process, self._frames)
        threading.Thread(target=_hear, args=hearing, name="local-child", daemon=True).start()
        self.kill = finalize(self, _end, self._process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, body: bytes) -> None:
        late = threading.Timer(_TAKING, self._process.kill)
        late.start()
        try:
            self._send(ASK, body)
        finally:
            late.cancel()

    def stop(self) -> None:
        """Have it end its answer at the next token."""
        self._send(STOP)

    def frame(self, seconds: float) -> Frame | None:
        """Return what it says next; None if it says nothing for so long."""
        try:
            return self._frames.get(timeout=seconds)
        except Empty:
            return None

    def _send(self, kind: bytes, payload: bytes = b"") -> None:
        with suppress(OSError):  # it died, as its last frame says
            write(self._input, kind, payload)


def _hear(process: subprocess.Popen[bytes], frames: SimpleQueue[Frame]) -> None:
    with BufferedReader(cast(RawIOBase, process.stdout)) as source:
        while (frame := read(source)) is not None:
            frames.put(frame)
    process.kill()  # if it lives still, it wrote what is no frame
    frames.put(Frame(DIED, _ending(process.wait()).encode()))


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin:
        process.stdin.close()
