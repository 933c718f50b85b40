"""`Channel`: what two processes of one gateway say to each other, told, or asked and answered."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from inspect import iscoroutine
from itertools import count
from typing import Any, Protocol, cast

import orjson

_HEAD = 4
_MOST_WAITING = 16 << 20
"""Bytes that wait for a process that does not read; what is more is not said."""


class Away(Exception):
    """The other process did not answer in time, or is gone."""


class Hearer(Protocol):
    """Who is told and asked; each word has its own meaning to it."""

    def told(self, word: str, values: Sequence[Any]) -> None: ...

    def asked(self, word: str, values: Sequence[Any]) -> Any:
        """Return the answer, or a coroutine that does."""

    def lost(self) -> None:
        """The other process is gone."""


class Channel(asyncio.Protocol):
    """Both ends of a socket are one. A message is its length and a list as JSON: the number of a
    question (0: none, below: the answer to one), the word, the values.
    """

    def __init__(self, hearer: Hearer) -> None:
        self._hearer = hearer
        self._transport: asyncio.Transport | None = None
        self._read = bytearray()
        self._unsent: list[bytes] = []
        self._timer: asyncio.Handle | None = None
        self._soon = False
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._answering: set[asyncio.Task[None]] = set()

    @property
    def open(self) -> bool:
        """Whether what is said now may arrive."""
        there = self._transport
        return there is not None and there.get_write_buffer_size() < _MOST_WAITING

    def tell(self, word: str, *values: Any, within: float = 0.0) -> None:
        """Say it, at the latest `within` so many seconds, together with what else is to be said."""
        if self.open:
            self._send([0, word, values], within)

    async def ask(self, seconds: float, word: str, *values: Any) -> Any:
        """Return the answer, or raise `Away`."""
        if not self.open:
            raise Away
        loop, number = asyncio.get_running_loop(), next(self._numbers)
        answer = self._waiting[number] = loop.create_future()
        self._send([number, word, values])
        late = loop.call_later(seconds, _give_up, answer)
        try:
            return await answer
        finally:
            late.cancel()
            del self._waiting[number]

    def close(self) -> None:
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def _send(self, message: Sequence[Any], within: float = 0.0) -> None:
        text = orjson.dumps(message)
        self._unsent.append(len(text).to_bytes(_HEAD) + text)
        loop = asyncio.get_running_loop()
        if not within and not self._soon:  # with what else is said at this moment
            self._soon = True
            loop.call_soon(self._flush)
        elif within and self._timer is None:
            self._timer = loop.call_later(within, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._soon = False
        unsent, self._unsent = self._unsent, []
        if self._transport is not None and unsent:
            self._transport.write(b"".join(unsent))

    # What the loop calls ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._read += data
        at = 0
        while len(self._read) - at >= _HEAD:
            end = at + _HEAD + int.from_bytes(self._read[at : at + _HEAD])
            if len(self._read) < end:
                break
            self._hear(*orjson.loads(self._read[at + _HEAD : end]))
            at = end
        del self._read[:at]

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        for answer in self._waiting.values():
            _give_up(answer)
        for task in self._answering:
            task.cancel()
        self._hearer.lost()

    def _hear(self, number: int, word: str, values: Sequence[Any]) -> None:
        if number == 0:
            self._hearer.told(word, values)
        elif number > 0:
            answer = self._hearer.asked(word, values)
            if iscoroutine(answer):
                task = asyncio.get_running_loop().create_task(self._answer(number, answer))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)
            else:
                self._send([-number, "", [answer]])
        elif (waiting := self._waiting.get(-number)) is not None and not waiting.done():
            waiting.set_result(values[0])

    async def _answer(self, number: int, answer: Coroutine[Any, Any, Any]) -> None:
        said = await answer
        if self.open:
            self._send([-number, "", [said]])


def _give_up(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(Away())
