"""How a conversation leaves an upstream; on real sockets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress

import pytest

from adapters.protocol import RequestContext
from adapters.wire.exchange import converse
from tests.adapters.wire.talking import never, pings_after, says
from tests.support.fold import Answer, fold, run
from tests.support.language import SAY, STOP, USAGE, exchange, sse
from tests.support.upstreams.loopback import Behaviour, Peer, loopback


@pytest.mark.parametrize("behave", [says(sse(SAY), ends=False), pings_after(sse(SAY))])
def test_closing_the_stream_leaves_the_upstream_at_once(behave: Behaviour) -> None:
    async def whole() -> None:
        async with loopback(behave) as up:
            stream = converse(up.link, exchange(), RequestContext(streamed=True))
            async with aclosing(stream):
                await anext(stream)
            await asyncio.wait_for(up.gone.wait(), 0.25)

    run(whole())


@pytest.mark.parametrize(
    ("behave", "streamed"),
    [
        (never, True),
        (never, False),
        (says(ends=False), True),
        (says(b"{", ends=False), False),
        (says(sse(SAY), ends=False), True),
        (says(sse(SAY, STOP), ends=False), True),
    ],
)
def test_cancelling_leaves_the_upstream_at_once(behave: Behaviour, streamed: bool) -> None:
    async def whole() -> float:
        async with loopback(behave) as up:
            stream = converse(
                up.link, exchange(streamed=streamed), RequestContext(streamed=streamed)
            )
            task = asyncio.create_task(fold(stream))
            await asyncio.sleep(0.1)
            task.cancel()
            started = time.monotonic()
            with suppress(asyncio.CancelledError):
                await task
            assert task.cancelled()
            await asyncio.wait_for(up.gone.wait(), 0.25)
            return time.monotonic() - started

    assert run(whole()) < 0.25


def keeps(body: Callable[[Peer], Awaitable[None]]) -> Behaviour:
    async def behave(peer: Peer) -> None:
        while True:
            await peer.request()
            await body(peer)

    return behave


def test_streams_one_after_the_other_share_a_connection() -> None:
    async def body(peer: Peer) -> None:
        await peer.start()
        await peer.chunk(sse(SAY))
        await peer.chunk(sse(STOP, USAGE))
        await peer.chunk(b"data: [DONE]\n\n")
        await asyncio.sleep(0.01)
        await peer.send(b"0\r\n\r\n")

    async def whole() -> int:
        async with loopback(keeps(body)) as up:
            for _ in range(3):
                answer = await fold(converse(up.link, exchange(), RequestContext(streamed=True)))
                assert answer.reason == "stop"
            return up.connections

    assert run(whole()) == 1


def test_many_streams_at_once_do_not_mix() -> None:
    async def body(peer: Peer) -> None:
        await peer.start()
        for _ in range(5):
            await peer.chunk(sse({"say": str(id(peer))}))
            await asyncio.sleep(0)
        await peer.chunk(sse(STOP, USAGE))
        await peer.send(b"0\r\n\r\n")

    async def whole() -> list[Answer]:
        async with loopback(keeps(body)) as up:
            talks = (
                fold(converse(up.link, exchange(), RequestContext(streamed=True)))
                for _ in range(20)
            )
            return await asyncio.gather(*talks)

    texts = [answer.text for answer in run(whole())]
    assert all(text == text[: len(text) // 5] * 5 for text in texts)
    assert len(set(texts)) == len(texts)
