"""Threads of tools: bounded for all tables together, named, and told of when they are stuck."""

from __future__ import annotations

import asyncio
import threading

import pytest

from middleware.tools.foreign import Raised
from middleware.tools.python.threads import Threads
from middleware.tools.tool import CallFailed


def test_a_table_that_is_stuck_leaves_threads_to_others() -> None:
    stop = threading.Event()

    async def whole() -> None:
        threads = Threads(print, most=4)
        stuck, other = threads.share(), threads.share()
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(stuck.run("stuck", lambda: stop.wait(30)), 0.05)
        with pytest.raises(CallFailed, match="2 calls of its table's tools have never ended"):
            await stuck.run("stuck", lambda: None)
        names = {one.name for one in threading.enumerate()}
        assert "tool stuck" in names
        assert await other.run("quick", lambda: 5) == 5
        stop.set()
        async with asyncio.timeout(5):
            for _ in range(500):
                await asyncio.sleep(0.01 if threads.busy else 0)
        assert await stuck.run("stuck", lambda: 6) == 6

    asyncio.run(whole())


def test_calls_wait_for_a_thread_and_none_is_lost() -> None:
    async def whole() -> None:
        threads = Threads(print, most=4)
        shares = [threads.share() for _ in range(3)]
        most = 0

        def work() -> int:
            nonlocal most
            most = max(most, threads.busy)
            return 1

        calls = [share.run("quick", work) for share in shares for _ in range(20)]
        assert await asyncio.gather(*calls) == [1] * 60
        assert most <= 4
        assert threads.busy == 0

    asyncio.run(whole())


def test_what_is_raised_is_a_value() -> None:
    async def whole() -> None:
        outcome = await Threads(print).share().run("leave", lambda: exec("raise SystemExit(3)"))
        assert isinstance(outcome, Raised)
        assert str(outcome) == "SystemExit: 3"

    asyncio.run(whole())
