"""The process of the embedded model: questions come on its standard input, answers go out.

It is run as a file and imports nothing of ours: its memory is the model's, and it starts quickly.
A frame is one byte that says its kind, four that say its length, and its payload.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import struct
import sys
import threading
from contextlib import suppress
from importlib import import_module
from io import RawIOBase
from queue import SimpleQueue
from typing import IO, Any, NamedTuple

# To the worker: a question; nobody listens to its answer any more.
ASK, STOP = b"A", b"S"
# From it: the model is loaded, or cannot be; a chunk of the answer; how the answer ended.
READY, UNREADABLE, CHUNK, END, REFUSED = b"R", b"U", b"C", b"E", b"F"
MOST = 64 << 20
"""Bytes a frame may have."""

_HEAD = struct.Struct(">cI")
# The prompt is read in portions of so many tokens: between two of them it can be stopped.
_PORTION = 128
# How the binding tells what C++ threw.
_THROWN = (RuntimeError, ValueError, LookupError, ArithmeticError, MemoryError, TypeError, OSError)


class Frame(NamedTuple):
    kind: bytes
    payload: bytes


def write(out: RawIOBase, kind: bytes, payload: bytes = b"") -> None:
    rest = memoryview(_HEAD.pack(kind, len(payload)) + payload)
    while rest:
        rest = rest[out.write(rest) or 0 :]


def read(source: IO[bytes]) -> Frame | None:
    """Return the next frame; None at the end of input, and where what comes is no frame."""
    head = source.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    kind, size = _HEAD.unpack(head)
    payload = source.read(size) if size <= MOST else b""
    return Frame(kind, payload) if len(payload) == size else None


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with(int(sys.argv[1]))
    _first_to_go()
    out = _output()
    asks: SimpleQueue[bytes] = SimpleQueue()
    stop = threading.Event()
    threading.Thread(target=_listen, args=(asks, stop), daemon=True).start()
    try:
        server = _load(**json.loads(sys.argv[2]))
    except (ImportError, *_THROWN) as error:
        return write(out, UNREADABLE, str(error).encode("utf-8", "replace"))
    write(out, READY)
    while True:
        _answer(server, asks.get(), out, stop)


def _answer(server: Any, body: bytes, out: RawIOBase, stop: threading.Event) -> None:
    def hear(chunk: bytes) -> bool:
        write(out, CHUNK, chunk)
        return stop.is_set()

    try:
        server.handle_chat_completions(body, hear)
    except _THROWN as error:
        return write(out, REFUSED, str(error).encode("utf-8", "replace"))
    write(out, END)


def _listen(asks: SimpleQueue[bytes], stop: threading.Event) -> None:
    while (frame := read(sys.stdin.buffer)) is not None:
        if frame.kind == STOP:
            stop.set()
        else:
            stop.clear()
            asks.put(frame.payload)
    os._exit(0)  # the gateway is gone, and native code may never come to an end


def _output() -> RawIOBase:
    """Frames alone go there: what a library prints goes where errors go."""
    ours = os.dup(1)
    os.dup2(2, 1)
    return open(ours, "wb", buffering=0)


def _die_with(parent: int) -> None:
    """Where the system offers it; the end of its input is told to it everywhere."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            set_death_signal = 1
            ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def _first_to_go() -> None:
    """If memory runs out, Linux ends this process before others."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")


def _load(path: str, window: int, threads: int) -> Any:
    runtime: Any = import_module("xllamacpp")
    said = runtime.CommonParams()
    said.model.path = path
    said.n_ctx = window
    said.n_parallel = 1
    said.n_batch = _PORTION
    said.cpuparams.n_threads = said.cpuparams_batch.n_threads = threads
    said.cache_ram_mib = 0
    said.warmup = False
    said.verbosity = -1
    # It opens a port of its own on this machine, which is nobody's to call.
    said.api_keys = [secrets.token_hex(16)]
    said.ui = said.endpoint_slots = False
    return runtime.Server(said)


if __name__ == "__main__":
    try:
        main()
    finally:
        os._exit(1)
