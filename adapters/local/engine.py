"""Questions take turns at a model that answers one at a time; its chunks reach the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import BoundedSemaphore

from adapters.errors import Busy, GatewayError, from_words
from adapters.wire.failures import timed_out

_WAITING = 16

Heard = Callable[[bytes], bool]
"""Takes a chunk, or none to be asked only; True ends the generation."""


class Engine:
    """One model. It has one thread, so generations take turns; waiters may leave."""

    def __init__(self, answer: Callable[[bytes, Heard], None], waiting: int = _WAITING) -> None:
        self._answer = answer
        """Calls back with each chunk, in the thread it is called in."""
        self._thread = ThreadPoolExecutor(1, "local-model")
        self._places = BoundedSemaphore(waiting)

    def ask(self, body: bytes, hear: Heard) -> Future[None]:
        """Have it answer when its turn comes; `hear` is called in its thread."""
        if not self._places.acquire(blocking=False):
            raise Busy(
                "Too many requests wait for the embedded model, which answers one at a time. "
                "Try again later, or serve this model by Ollama or llama.cpp's server.",
                retry_after="10",
            )
        asked = self._thread.submit(self._answer, body, hear)
        asked.add_done_callback(lambda _: self._places.release())
        return asked


class EngineAnswer:
    """Chunks that come in the engine's thread, read in the loop."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._loop = asyncio.get_running_loop()
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._failure: BaseException | None = None
        self._closed = False

    def hear(self, chunk: bytes) -> bool:
        if chunk and not self._closed:
            self._loop.call_soon_threadsafe(self._chunks.put_nowait, chunk + b"\n")
        return self._closed

    def over(self, asked: Future[None]) -> None:
        if not self._closed:
            self._failure = asked.exception()
            self._loop.call_soon_threadsafe(self._chunks.put_nowait, b"")

    async def read(self, due: float) -> bytes:
        try:
            async with asyncio.timeout_at(due):
                chunk = await self._chunks.get()
        except TimeoutError as error:
            raise timed_out(self._upstream, "did not answer in time") from error
        if not chunk and self._failure is not None:
            raise _failure(self._failure, self._upstream)
        return chunk

    def close(self, asked: Future[None]) -> None:
        """Leave the queue, or end the generation at its next token."""
        self._closed = True
        asked.cancel()


def _failure(error: BaseException, upstream: str) -> GatewayError:
    """It raises where its HTTP side answers 400: an image it cannot see, a template's refusal."""
    if isinstance(error, GatewayError):
        return error
    return from_words(400, str(error), upstream)
