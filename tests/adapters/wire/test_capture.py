"""What is kept of an answer that is recorded: the upstream's own pieces, however they came."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from adapters.wire.capture import UNNOTED, Capture
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

PIECES = (b"data: 1\n\n", b"data: \xe6\xb2", b"\x88\n", b"\n", b"data: 3\n\n" * 200)
WHOLE = b"".join(PIECES)


def keeper() -> Capture:
    capture = Capture()
    capture.whole = True
    return capture


def sends(*writes: Sequence[bytes]) -> Behaviour:
    """Chunks, of each of these lists at once."""

    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.start()
        for chunks in writes:
            await peer.send(b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks))
            await asyncio.sleep(0.03)
        await peer.chunk(b"")
        await peer.left()

    return behave


def read(behave: Behaviour, capture: Capture) -> list[bytes]:
    async def go() -> list[bytes]:
        async with loopback(behave) as up:
            due = asyncio.get_running_loop().time() + 5
            reply = await up.link.post("/x", b"{}", due, capture)
            found = []
            while piece := await reply.read(due):
                found.append(piece)
            reply.close()
            return found

    return asyncio.run(go())


@pytest.mark.parametrize(
    "writes", [[PIECES], [PIECES[:2], PIECES[2:]], [[piece] for piece in PIECES]]
)
def test_pieces_are_the_upstreams_own_and_are_read_together(
    writes: Sequence[Sequence[bytes]],
) -> None:
    capture = keeper()
    found = read(sends(*writes), capture)
    assert b"".join(found) == WHOLE
    assert len(found) <= len(writes)
    (call,) = capture
    assert call.pieces == found
    chunks = call.chunks or []
    assert [size for _, sizes in chunks for size in sizes] == [*map(len, PIECES)]
    assert call.chunking is UNNOTED  # who keeps it keeps nothing of the connection
    times = [time for time, _ in chunks]
    assert len(times) == len(call.pieces)
    assert times == sorted(times)


def test_a_body_without_chunks_is_kept_as_it_came() -> None:
    async def plain(peer: Peer) -> None:
        await peer.request()
        await peer.answer(WHOLE)

    capture = keeper()
    assert b"".join(read(plain, capture)) == WHOLE
    (call,) = capture
    assert b"".join(call.pieces) == WHOLE


def test_an_answer_without_a_body_was_an_answer() -> None:
    async def nothing(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b"")

    capture = keeper()
    assert read(nothing, capture) == []
    (call,) = capture
    assert call.pieces == [b""]


def test_the_end_of_a_chunk_that_comes_alone_is_no_end_of_the_answer() -> None:
    async def late_ends(peer: Peer) -> None:
        await peer.request()
        await peer.start()
        for piece in PIECES:
            await peer.send(b"%x\r\n%b" % (len(piece), piece))
            await asyncio.sleep(0.01)
            await peer.send(b"\r\n")
            await asyncio.sleep(0.01)
        await peer.chunk(b"")
        await peer.left()

    capture = keeper()
    assert read(late_ends, capture) == [*PIECES]
    (call,) = capture
    assert [size for _, sizes in call.chunks or [] for size in sizes] == [*map(len, PIECES)]
