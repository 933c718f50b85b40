"""One request to a server of a test, and how it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from adapters.wire.http import Link
from tests.support.upstreams.loopback import Peer

BODY = b'{"model":"m"}'


def soon(seconds: float = 2) -> float:
    return asyncio.get_running_loop().time() + seconds


async def ask(link: Link, seconds: float = 2) -> bytes:
    """One request, its whole answer."""
    reply = await link.post("/chat", BODY, soon(seconds))
    return await reply.whole(soon(seconds))


async def silence(peer: Peer) -> None:
    await peer.request()
    await peer.left()


def answering(
    body: bytes = b"{}", *headers: str, status: str = "200 OK"
) -> Callable[[Peer], Awaitable[None]]:
    """Answer every request of every connection the same way."""

    async def behave(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.answer(body, *headers, status=status)

    return behave


async def cut_chunks(peer: Peer) -> None:
    await peer.request()
    await peer.start()
    await peer.chunk(b"{")


async def stalled(peer: Peer) -> None:
    await cut_chunks(peer)
    await peer.left()
