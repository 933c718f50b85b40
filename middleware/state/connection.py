"""`RedisConnection`: questions with a time limit, and none at all while Redis is away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

from middleware.state.scripts import ADD, KEEP, MARK, PATIENCE, SETTLE, SUMS, TAKE

if TYPE_CHECKING:
    from redis.asyncio import Redis

PREFIX = "{usetool}:"
_LOOK_EVERY, _LOOK_AGAIN = 2.0, 0.5
"""Seconds between two looks at Redis while it is there, and while it is not."""
_CONNECTIONS = 4
_TOGETHER = 256
_GRACE = 0.05
_SCRIPTS = (TAKE, SETTLE, SUMS, MARK, ADD, KEEP)
_NAME = f"{PREFIX}name"


class _Client(NamedTuple):
    redis: Redis
    failures: tuple[type[Exception], ...]


class _Question(NamedTuple):
    script: str
    """Empty: what lies under the keys."""
    keys: Sequence[Any]
    values: Sequence[Any]
    answer: asyncio.Future[Any]


class RedisConnection:
    """Questions that come while others are asked go together, as one.

    A failure is noticed by whom it costs a moment; from then on one task looks for Redis.
    """

    def __init__(
        self, url: str, say: Callable[[str], None], returned: Callable[[bool], Awaitable[None]]
    ) -> None:
        self._client = _client_of(url)
        self._say = say
        self._returned = returned
        """Called when it is there again, before others ask; says whether it lost what it had."""
        self._scripts: Mapping[str, str] = {}
        """Text → the name Redis gave it."""
        self._asked: list[_Question] = []
        self._asking: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._lost = asyncio.Event()
        self.ahead = 0.0
        """Seconds by which its clock is ahead of this machine's."""
        self._told = False
        self._name: bytes | str | None = None
        """Given by the first who found it without one; None: it was never met."""
        self._closed = False
        self.well = False

    def now(self) -> float:
        """The time by the clock of Redis, which all gateways go by."""
        return time.time() + self.ahead

    async def run(self, script: str, keys: Sequence[Any], *values: Any) -> Sequence[Any] | None:
        """What a script says; None: Redis is away, and nothing was done."""
        if self._watch is None:
            await self._begin()
        if not self.well:
            return None
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked.append(_Question(script, keys, values, answer))
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_all())
        said: Sequence[Any] | None = await answer
        return said

    async def get(self, keys: Sequence[bytes]) -> Sequence[bytes | None] | None:
        """What lies under keys; None: Redis is away."""
        return await self.run("", keys) if keys else ()

    async def send(self, script: str, keys: Sequence[Any], *values: Any) -> Sequence[Any]:
        """As `run`, for what has to be done before others ask; a failure is raised."""
        question = _Question(script, keys, values, asyncio.get_running_loop().create_future())
        (said,) = await self._answers([question])
        if said is None:
            raise TimeoutError("it was not done")
        return said

    async def _ask_all(self) -> None:
        """Until nobody asks any more."""
        try:
            while asked := self._asked[:_TOGETHER]:
                del self._asked[: len(asked)]
                await self._ask(asked)
        finally:
            self._asking = None

    async def _ask(self, asked: Sequence[_Question]) -> None:
        answers: Sequence[Sequence[Any] | None] = [None] * len(asked)
        try:
            if self.well:
                answers = await self._answers(asked)
        except self._client.failures:
            pass
        finally:
            if None in answers:
                self.well = False
                self._lost.set()
            for question, said in zip(asked, answers, strict=True):
                if not question.answer.done():  # who asked may be gone
                    question.answer.set_result(said)

    async def _answers(self, asked: Sequence[_Question]) -> Sequence[Sequence[Any] | None]:
        pipeline, now = self._client.redis.pipeline(transaction=False), repr(self.now())
        for script, keys, values, _ in asked:
            if script:
                name = self._scripts[script]
                pipeline.execute_command("EVALSHA", name, len(keys), *keys, now, *values)
            else:
                pipeline.execute_command("MGET", *keys)
        task = asyncio.ensure_future(pipeline.execute(raise_on_error=False))
        try:
            await asyncio.wait([task], timeout=PATIENCE)
            # What held this process up is no fault of Redis: its answer may be there.
            await asyncio.wait([task], timeout=_GRACE)
        finally:
            task.cancel()
        if not task.done():
            raise TimeoutError(f"no answer within {PATIENCE} s")
        answers = zip(asked, task.result(), strict=True)
        return [_said(question.script, answer) for question, answer in answers]

    async def _begin(self) -> None:
        self._watch = asyncio.create_task(self._looking())
        await self._look()

    async def _looking(self) -> None:
        while not self._closed:  # a cancellation may be lost in the library
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY if self.well else _LOOK_AGAIN):
                    await self._lost.wait()
            self._lost.clear()
            await self._look()

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._meet(self._client.redis)
        except self._client.failures as failure:
            self._away(str(failure) or f"no answer within {PATIENCE} s")
        else:
            self._back()

    async def _meet(self, redis: Redis) -> None:
        # Written, as one that only reads is of no use; what it was named says whether it is as it
        # was.
        await redis.set(_NAME, token_hex(8), nx=True)
        name = await redis.get(_NAME)
        asked = time.time()
        seconds, microseconds = await redis.time()
        lost = self._name not in (name, None)
        if self.well and not lost:
            return
        self.ahead = seconds + microseconds / 1e6 - (asked + time.time()) / 2
        self._scripts = {text: await redis.script_load(text) for text in _SCRIPTS}
        await self._returned(lost)
        self._name = name

    def _away(self, reason: str) -> None:
        self.well = False
        if not self._told:
            self._told = True
            self._say(f"Redis is away ({reason}): limits and budgets are this gateway's own")

    def _back(self) -> None:
        self.well = True
        if self._told:
            self._told = False
            self._say("Redis is back: limits and budgets are shared again")

    async def close(self) -> None:
        self._closed = True
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch], timeout=PATIENCE)
            if self._asking is not None:
                await asyncio.wait([self._asking], timeout=PATIENCE)
        with suppress(*self._client.failures):
            async with asyncio.timeout(PATIENCE):
                await self._client.redis.aclose()


def _client_of(url: str) -> _Client:
    """Imported here: only who configured it waits for it."""
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.exceptions import RedisError

    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=_CONNECTIONS,
        timeout=PATIENCE,
        socket_timeout=PATIENCE,
        socket_connect_timeout=PATIENCE,
        driver_info=None,
    )
    redis = Redis.from_pool(pool)
    return _Client(redis, (RedisError, OSError, TimeoutError))


def _said(script: str, answer: Any) -> Sequence[Any] | None:
    """None: it failed, or came too late for Redis to do it."""
    if isinstance(answer, Exception) or (script and answer[0]):
        return None
    said: Sequence[Any] = answer[1:] if script else answer
    return said
