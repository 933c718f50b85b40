"""Requests and answers on real connections: what is kept, what is cut, and who waits for whom."""

from __future__ import annotations

import asyncio
import gc
import gzip
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from adapters.errors import GatewayError, Unavailable
from adapters.wire.http import Transport
from adapters.wire.transport.client import HttpClient
from adapters.wire.transport.connection import MOST_HELD, Connection
from adapters.wire.transport.library import LibraryClient
from adapters.wire.transport.response import Incoming
from adapters.wire.transport.seam import Sender
from tests.adapters.wire.asking import BODY, answering, ask, soon
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

Go = Callable[[Callable[[], Awaitable[None]]], None]
READ = 256 << 10
"""The most that a loop reads at once."""
PIECE = b"x" * (64 << 10)
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


@pytest.fixture(params=["asyncio", "uvloop"])
def go(request: pytest.FixtureRequest) -> Go:
    """Run a check on either loop."""

    def run(check: Callable[[], Awaitable[None]]) -> None:
        factory = pytest.importorskip(request.param).new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(asyncio.wait_for(check(), 10))

    return run


def says(*answers: bytes, then: str = "waits") -> Behaviour:
    """Answer one request after the other with these bytes, then leave or wait."""

    async def behave(peer: Peer) -> None:
        for answer in answers:
            await peer.request()
            await peer.send(answer)
        if then == "waits":
            await peer.left()

    return behave


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (ANSWER, True),
        (b"HTTP/1.1 100 Go on\r\n\r\n" + ANSWER, True),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\na: b\r\n\r\n",
            True,
        ),
        (ANSWER.replace(b"OK\r\n", b"OK\r\nconnection: close\r\n"), False),
        (ANSWER.replace(b"1.1", b"1.0"), False),
        (ANSWER + b"surplus", False),
        (ANSWER + ANSWER, False),
    ],
)
def test_only_a_connection_that_is_clean_carries_another_request(
    go: Go, answer: bytes, kept: bool
) -> None:
    async def check() -> None:
        async with loopback(says(answer, answer)) as up:
            assert [await ask(up.link), await ask(up.link)] == [b"{}", b"{}"]
            assert up.connections == (1 if kept else 2)

    go(check)


def test_a_body_without_a_length_ends_with_its_connection(go: Go) -> None:
    async def check() -> None:
        async with loopback(says(b"HTTP/1.1 200 OK\r\n\r\n{}", then="leaves")) as up:
            assert await ask(up.link) == b"{}"

    go(check)


def test_what_arrives_unasked_closes_the_connection(go: Go) -> None:
    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.send(ANSWER)
        await asyncio.sleep(0.02)
        await peer.send(ANSWER.replace(b"{}", b"[]"))
        await peer.left()

    async def check() -> None:
        async with loopback(behave) as up:
            assert await ask(up.link) == b"{}"
            await asyncio.wait_for(up.gone.wait(), 1)
            assert await ask(up.link) == b"{}"

    go(check)


def stop(seconds: float) -> None:
    time.sleep(seconds)


def test_what_nobody_wants_is_closed_in_time(go: Go) -> None:
    async def check() -> None:
        async with loopback(says(ANSWER)) as up:
            transport = Transport(HttpClient(idle_seconds=0.05))
            link = replace(up.link, transport=transport)
            await ask(link)
            stop(0.06)  # the loop had no time to close it
            await ask(link)
            assert up.connections == 2
            await asyncio.wait_for(up.gone.wait(), 1)
            await transport.close()

    go(check)


@pytest.mark.parametrize("pause", [0, 0.02], ids=["as it is sent", "while idle"])
@pytest.mark.parametrize("resets", [True, False], ids=["reset", "closed"])
def test_a_kept_connection_that_was_closed_is_replaced(go: Go, pause: float, resets: bool) -> None:
    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.send(ANSWER)
        if resets:
            peer.reset()

    async def check() -> None:
        async with loopback(behave) as up:
            for _ in range(3):
                assert await ask(up.link) == b"{}"
                await asyncio.sleep(pause)
            assert up.connections == 3

    go(check)


def test_once_an_answer_began_nobody_is_asked_again(go: Go) -> None:
    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.send(ANSWER)
        await peer.request()
        await peer.send(b"HTTP/1.1 2")

    async def check() -> None:
        async with loopback(behave) as up:
            await ask(up.link)
            with pytest.raises(Unavailable, match="closed by it before it answered"):
                await ask(up.link)
            assert up.connections == 1

    go(check)


def test_what_was_asked_again_is_not_asked_a_third_time(go: Go) -> None:
    async def behave(peer: Peer) -> None:
        await peer.request()
        if not answered:
            answered.append(peer)
            await peer.send(ANSWER)
            await peer.request()

    answered: list[Peer] = []

    async def check() -> None:
        async with loopback(behave) as up:
            await ask(up.link)
            with pytest.raises(Unavailable):
                await ask(up.link)
            assert up.connections == 2

    go(check)


# Who is slow -----------------------------------------------------------------------------------


def test_an_upstream_waits_for_a_slow_reader(go: Go) -> None:
    sent = [0]

    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.start()
        for _ in range(4096):
            await peer.chunk(PIECE)
            sent[0] += len(PIECE)
        await peer.chunk(b"")

    async def check() -> None:
        async with loopback(behave) as up:
            reply = await up.link.post("/", BODY, soon())
            seen = -1
            while sent[0] > seen:
                seen = sent[0]
                await asyncio.sleep(0.1)
            assert seen < 4096 * len(PIECE) / 2
            most = size = 0
            while piece := await reply.read(soon()):
                size += len(piece)
                most = max(most, len(piece))
            reply.close()
            assert size == 4096 * len(PIECE)
            assert most <= MOST_HELD + READ

    go(check)


@pytest.mark.parametrize("sender", [HttpClient, LibraryClient])
def test_an_answer_that_never_ends_has_its_time(go: Go, sender: type[Sender]) -> None:
    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.start()
        while True:
            await peer.chunk(PIECE)

    async def check() -> None:
        async with loopback(behave) as up:
            transport = Transport(sender())
            reply = await replace(up.link, transport=transport).post("/", BODY, soon())
            due = soon(0.2)
            with pytest.raises(GatewayError) as failure:
                while soon(0) < due + 5:
                    await reply.read(due)
                    await asyncio.sleep(0.01)  # so that something always is here
            assert failure.value.code == "upstream_timeout"
            reply.close()
            await transport.close()

    go(check)


def test_what_inflates_far_has_its_time(go: Go) -> None:
    bomb = gzip.compress(bytes(64 << 20))

    async def check() -> None:
        async with loopback(answering(bomb, "content-encoding: gzip")) as up:
            reply = await up.link.post("/", BODY, soon())
            due = soon(0.2)
            with pytest.raises(GatewayError, match="silent"):
                while await reply.read(due):
                    await asyncio.sleep(0.01)
            reply.close()

    go(check)


def test_what_is_here_whole_is_read_however_late(go: Go) -> None:
    async def check() -> None:
        async with loopback(says(ANSWER)) as up:
            reply = await up.link.post("/", BODY, soon())
            await asyncio.sleep(0.02)
            assert await reply.read(soon(-1)) == b"{}"
            reply.close()

    go(check)


def test_a_large_request_waits_for_a_slow_upstream(go: Go) -> None:
    body = b"0123456789abcdef" * (1 << 20)

    async def behave(peer: Peer) -> None:
        await asyncio.sleep(0.2)
        peaks.append(tracemalloc.get_traced_memory()[1])
        _, found = await peer.request()
        assert found == body
        await peer.send(ANSWER)
        await peer.left()

    async def check() -> None:
        async with loopback(behave) as up:
            reply = await up.link.post("/", body, soon(5))
            assert await reply.whole(soon()) == b"{}"

    peaks: list[int] = []
    tracemalloc.start()
    try:
        go(check)
    finally:
        tracemalloc.stop()
    assert peaks[0] < len(body) / 4


@pytest.mark.parametrize("status", ["200 OK", "413 Too Large"])
def test_an_answer_before_the_request_is_sent_is_read_and_the_rest_is_not_sent(
    go: Go, status: str
) -> None:
    async def behave(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.answer(b"{}", status=status)
        await asyncio.sleep(0.05)
        await peer.left()

    async def check() -> None:
        async with loopback(behave) as up:
            failure = None
            try:
                reply = await up.link.post("/", b"x" * (32 << 20), soon())
                assert await reply.whole(soon()) == b"{}"
            except GatewayError as error:
                failure = error.status
            assert failure == (None if status == "200 OK" else 413)
            await asyncio.wait_for(up.gone.wait(), 1)

    go(check)


def test_streams_that_are_left_leave_nothing_behind(go: Go) -> None:
    """Neither cycles, which only the garbage collector would find, nor timers."""

    def alive() -> list[object]:
        return [one for one in gc.get_objects() if isinstance(one, Connection | Incoming)]

    async def check() -> None:
        begun = ANSWER.replace(b": 2", b": 9")
        async with loopback(says(ANSWER, ANSWER, begun)) as up:
            gc.collect()
            gc.disable()
            before = len(alive())
            for _ in range(2):
                await ask(up.link)
            reply = await up.link.post("/", BODY, soon())
            assert await reply.read(soon()) == b"{}"
            reply.close()
            del reply
            await asyncio.sleep(0.01)
            after = len(alive())
            gc.enable()
            assert after == before

    go(check)
