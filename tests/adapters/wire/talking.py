"""Upstreams that speak, ping and fall silent, on real sockets."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.support.upstreams.loopback import Behaviour, Peer

PING = b": ping\n\n"


def says(*pieces: bytes, ends: bool = True, every: float = 0.0) -> Behaviour:
    """Answer with these chunks, then end the body, or hold it open."""

    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.start()
        for piece in pieces:
            await peer.chunk(piece)
            await asyncio.sleep(every)
        if ends:
            await peer.send(b"0\r\n\r\n")
        else:
            await peer.left()

    return behave


def pings_after(said: bytes) -> Behaviour:
    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.start()
        if said:
            await peer.chunk(said)
        with suppress(ConnectionError):
            while not peer.writer.is_closing():
                await peer.chunk(PING)
                await asyncio.sleep(0.02)
        peer.gone.set()

    return behave


async def never(peer: Peer) -> None:
    await peer.request()
    await peer.left()
