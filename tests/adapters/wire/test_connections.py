"""Connections to upstreams: kept, left, closed; and what is sent on them."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from adapters.errors import Unavailable
from adapters.wire.transport.client import MOST_IDLE
from tests.adapters.wire.asking import BODY, answering, ask, silence, soon, stalled
from tests.support.fold import run
from tests.support.upstreams.loopback import Behaviour, Peer, loopback


def timers() -> list[asyncio.TimerHandle]:
    loop: Any = asyncio.get_running_loop()
    return [timer for timer in loop._scheduled if not timer.cancelled()]


# Connections -----------------------------------------------------------------------------------


def test_a_connection_is_kept_for_the_next_request() -> None:
    async def check() -> None:
        async with loopback(answering()) as up:
            for _ in range(3):
                assert await ask(up.link) == b"{}"
            assert up.connections == 1

    run(check())


@pytest.mark.parametrize("resets", [True, False], ids=["reset", "closed"])
def test_a_kept_connection_that_died_is_not_noticed(resets: bool) -> None:
    """The upstream hangs up the moment the second request arrives."""

    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b"{}")
        await peer.reader.read(1)
        if resets:
            peer.reset()

    async def check() -> None:
        async with loopback(behave) as up:
            for _ in range(3):
                assert await ask(up.link) == b"{}"
            assert up.connections == 3

    run(check())


def test_of_a_burst_only_so_many_connections_are_kept() -> None:
    async def check() -> None:
        everybody = asyncio.Event()

        async def behave(peer: Peer) -> None:
            await peer.request()
            if up.connections == MOST_IDLE + 20:
                everybody.set()
            await everybody.wait()
            await peer.answer(b"{}")
            await peer.left()
            left.append(peer)

        left: list[Peer] = []
        async with loopback(behave) as up:
            asked = [ask(up.link, 10) for _ in range(MOST_IDLE + 20)]
            assert await asyncio.gather(*asked) == [b"{}"] * (MOST_IDLE + 20)
            await asyncio.sleep(0.1)
            assert len(left) == 20

    run(check())


def test_a_stream_that_ended_is_settled_and_its_connection_kept() -> None:
    heard = asyncio.Event()

    async def behave(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.start()
            await peer.chunk(b"one")
            await heard.wait()
            for piece in (b"two", b"three"):
                await peer.chunk(piece)
                await asyncio.sleep(0)
            await peer.send(b"0\r\n\r\n")

    async def check() -> None:
        async with loopback(behave) as up:
            for _ in range(2):
                heard.clear()
                reply = await up.link.post("/", BODY, soon())
                assert await reply.read(soon()) == b"one"
                heard.set()
                await reply.settle()
                reply.close()
            assert up.connections == 1

    run(check())


def test_an_upstream_that_holds_a_finished_stream_open_is_left() -> None:
    async def check() -> None:
        async with loopback(stalled) as up:
            reply = await up.link.post("/", BODY, soon())
            await reply.read(soon())
            started = time.monotonic()
            await reply.settle()
            reply.close()
            assert time.monotonic() - started < 0.5

    run(check())


def test_closing_cuts_the_connection_at_once() -> None:
    async def check() -> None:
        async with loopback(stalled) as up:
            reply = await up.link.post("/", BODY, soon())
            await reply.read(soon())
            reply.close()
            await asyncio.wait_for(up.gone.wait(), 0.25)
            reply.close()

    run(check())


@pytest.mark.parametrize("behave", [silence, stalled])
def test_a_cancelled_request_leaves_the_upstream_at_once(behave: Behaviour) -> None:
    async def check() -> None:
        async with loopback(behave) as up:
            task = asyncio.create_task(ask(up.link))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(up.gone.wait(), 0.25)

    run(check())


def test_reading_goes_on_when_the_time_is_nearly_over() -> None:
    """uvloop makes a plain handle of a timer that is due within a millisecond."""
    uvloop = pytest.importorskip("uvloop")

    async def check() -> None:
        async with loopback(stalled) as up:
            reply = await up.link.post("/", BODY, soon())
            await asyncio.sleep(0.05)  # so that the first piece is here
            assert await reply.read(soon(0.0005)) == b"{"
            with pytest.raises(Unavailable, match="fell silent"):
                await reply.read(soon(0.0004))
            reply.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(check(), 5))


def test_a_connection_has_one_timer_for_all_its_waiting() -> None:
    async def check() -> None:
        before = timers()
        async with loopback(answering()) as up:
            for _ in range(20):
                await ask(up.link, 1000)
            assert len(timers()) <= len(before) + 2  # it, and one for connections that are idle
            await up.link.transport.close()
            assert timers() == before

    run(check())


# What is sent ----------------------------------------------------------------------------------


def test_only_what_was_configured_is_sent() -> None:
    heads = []

    async def behave(peer: Peer) -> None:
        while True:
            head, body = await peer.request()
            assert body == BODY
            heads.append(dict(line.split(": ", 1) for line in head.strip().split("\r\n")[1:]))
            await peer.answer(b"{}", "set-cookie: session=1")

    async def check() -> None:
        async with loopback(behave) as up:
            headers = {"x-api-key": "k", "content-type": "application/json"}
            # By its name: a jar would refuse the cookie of an address anyway.
            named = up.url.replace("127.0.0.1", "localhost")
            link = replace(up.link, base_url=named, headers=headers)
            await ask(link)
            await ask(link)

    run(check())
    assert heads[0] == heads[1]
    assert set(heads[0]) == {"host", "x-api-key", "content-type", "content-length"}


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "ALL_PROXY"])
def test_proxies_of_the_environment_are_not_used(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        async with loopback(answering(b"trapped")) as trap, loopback(answering()) as up:
            monkeypatch.setenv(name, trap.url)
            assert await ask(up.link) == b"{}"
            assert trap.connections == 0

    run(check())


def test_a_proxy_of_the_config_is_used() -> None:
    async def check() -> None:
        async with loopback(answering(b"by proxy")) as proxy, loopback(answering()) as up:
            assert await ask(replace(up.link, proxy=proxy.url)) == b"by proxy"
            assert up.connections == 0

    run(check())


def test_a_closed_transport_can_be_used_again() -> None:
    async def check() -> None:
        async with loopback(answering()) as up:
            await ask(up.link)
            await up.link.transport.close()
            assert await ask(up.link) == b"{}"

    run(check())
