"""Pieces of an answer that is here whole: written together, and chunks of their own."""

from __future__ import annotations

import asyncio

from starlette.types import Receive, Scope, Send

from middleware.server.transport.responses import CONNECTION, PIECES
from tests.server.transport.paper import BEFORE, heard, serving
from tests.server.transport.talking import ONE, say


async def gathered(scope: Scope, _: Receive, send: Send) -> None:
    scope[CONNECTION].gather()
    await say(send, b"one", more=True)
    await say(send, b"", more=True, begun=True)
    await say(send, b"two", more=True, begun=True)
    await asyncio.sleep(0)
    await say(send, b"three", more=True, begun=True)
    await asyncio.sleep(0)
    await say(send, b"four", more=True, begun=True)
    await say(send, b"five", begun=True)


def test_what_is_gathered_leaves_by_turns_of_the_loop_in_pieces_of_its_own() -> None:
    assert heard(gathered, ONE, 3) == [
        BEFORE + b"transfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n",
        b"5\r\nthree\r\n",
        b"4\r\nfour\r\n4\r\nfive\r\n0\r\n\r\n",
    ]


async def at_once(scope: Scope, _: Receive, send: Send) -> None:
    scope[CONNECTION].gather()
    await say(send, b"", more=True)
    await send({"type": PIECES, "pieces": [b"one", b"", b"two"]})
    await asyncio.sleep(0)
    await send({"type": PIECES, "pieces": [b"three"]})
    await asyncio.sleep(0)
    await send({"type": PIECES, "pieces": [b"four"]})
    await say(send, b"five", begun=True)


def test_pieces_that_are_given_at_once_are_chunks_as_if_they_had_come_alone() -> None:
    assert heard(at_once, ONE, 3) == heard(gathered, ONE, 3)
    for_its_head = ONE.replace(b"POST", b"HEAD")
    assert heard(at_once, for_its_head) == heard(gathered, for_its_head)


def test_pieces_leave_at_once_where_nothing_is_gathered() -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": PIECES, "pieces": [b"one", b"two"]})
        await send({"type": PIECES, "pieces": [b""]})
        await say(send, b"three", begun=True)

    first, last = heard(app, ONE, 2)
    assert first == BEFORE + b"transfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n"
    assert last == b"5\r\nthree\r\n0\r\n\r\n"


def test_no_more_is_gathered_than_a_connection_takes() -> None:
    async def app(scope: Scope, _: Receive, send: Send) -> None:
        scope[CONNECTION].gather()
        await say(send, b"", more=True)
        for piece in [bytes(10_000)] * 30:
            await say(send, piece, more=True, begun=True)
        await say(send, b"", begun=True)

    *writes, _ = heard(app, ONE, 5)
    assert [round(len(write), -4) for write in writes] == [70_000] * 4


def test_what_was_gathered_leaves_before_a_connection_is_cut() -> None:
    async def app(scope: Scope, _: Receive, send: Send) -> None:
        scope[CONNECTION].gather()
        await say(send, b"one", more=True)
        scope[CONNECTION].cut()

    async def scene() -> None:
        protocol, paper = serving(app)
        protocol.data_received(ONE)
        (said,) = await paper.until(1)
        assert said.endswith(b"\r\n\r\n3\r\none\r\n")
        assert paper.closed

    asyncio.run(scene())


def test_nothing_overtakes_what_was_gathered() -> None:
    async def app(scope: Scope, _: Receive, send: Send) -> None:
        scope[CONNECTION].gather()
        await say(send, b"one", more=True)
        assert scope[CONNECTION].eof_received()  # which looks whether the client still listens
        await say(send, b"two", begun=True)

    first, filler, last, *_ = heard(app, ONE, 3)
    assert first.endswith(b"\r\n\r\n3\r\none\r\n")
    assert (filler, last) == (b"8\r\n: ping\n\n\r\n", b"3\r\ntwo\r\n0\r\n\r\n")


def test_what_was_gathered_for_a_client_that_left_is_not_written() -> None:
    async def app(scope: Scope, _: Receive, send: Send) -> None:
        scope[CONNECTION].gather()
        await say(send, b"one", more=True)
        scope[CONNECTION].transport.close()
        await asyncio.sleep(0)
        await say(send, b"two", begun=True)

    assert heard(app, ONE, 0) == []
