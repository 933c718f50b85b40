"""Our own client and aiohttp, one beside the other: the same goes up, the same comes down."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import pytest

from adapters.errors import GatewayError
from adapters.wire.http import Transport
from adapters.wire.transport.client import HttpClient
from adapters.wire.transport.library import LibraryClient
from adapters.wire.transport.request import Outgoing, kept_start_of_head
from tests.adapters.wire import test_http as faults
from tests.adapters.wire.asking import cut_chunks, silence, soon, stalled
from tests.support.fold import run
from tests.support.recordings import (
    Interaction,
    Played,
    Upstream,
    ask_twice,
    interactions,
    play,
    upstreams,
)
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

HEADERS: Mapping[str, str] = {"content-type": "application/json", "accept-encoding": "identity"}


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/chat", b"{}", HEADERS),
        ("", b"{}", HEADERS),
        ("/chat?beta=true&name=a b", b"{}", HEADERS),
        ("/中/a%20b/../c", b"{}", {**HEADERS, "X-Name": "b\u00e4r", "X-Empty": ""}),
        ("/chat", b"", HEADERS),
        ("/chat", b"x" * 200_000, HEADERS),
        ("/chat", b"{}", {"host": "elsewhere.test", **HEADERS, "connection": "close"}),
    ],
)
def test_the_same_bytes_go_up(path: str, body: bytes, headers: Mapping[str, str]) -> None:
    sent: list[tuple[str, bytes]] = []

    async def behave(peer: Peer) -> None:
        sent.append(await peer.request())
        await peer.answer(b"{}")

    async def check() -> None:
        async with loopback(behave) as up:
            for sender in (HttpClient(), LibraryClient()):
                transport = Transport(sender)
                link = replace(up.link, headers=headers, transport=transport)
                await (await link.post(path, body, soon())).whole(soon())
                await transport.close()

    run(check())
    assert sent[0] == sent[1]


@pytest.mark.parametrize("value", ["x\r\ny: z", "x\ny: z", "x\ry: z", "x\0"])
def test_no_header_makes_another(value: str) -> None:
    for headers in ({"x": value}, {value: "x"}):
        with pytest.raises(ValueError, match="line break"):
            Outgoing("POST", "http://up.test/", headers, b"").head()


@pytest.mark.parametrize(
    "behave",
    [
        *(faults.nothing, faults.reset, faults.half_a_head, faults.garbage, faults.endless_head),
        *(faults.cut_length, cut_chunks, faults.reset_body, faults.not_gzip),
        *(silence, stalled),
    ],
)
def test_a_failure_has_the_same_name(behave: Behaviour) -> None:
    async def check() -> None:
        async with loopback(behave) as up:
            found = []
            for sender in (HttpClient(), LibraryClient()):
                link = replace(up.link, transport=Transport(sender))
                error = await faults.failing(link, 0.5)
                found.append((type(error), vars(error)))
                await link.transport.close()
            assert found[0] == found[1]

    run(check())


# Recordings ------------------------------------------------------------------------------------


def on_the_wire(said: Interaction, chunk: int) -> bytes:
    """A recorded answer in chunks of this size."""
    lines = [f"HTTP/1.1 {said.status} Said", "transfer-encoding: chunked"]
    lines += [f"{name}: {value}" for name, value in said.headers.items()]
    pieces = [said.body[at : at + chunk] for at in range(0, len(said.body), chunk)]
    chunks = (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in [*pieces, b""])
    return "\r\n".join([*lines, "", ""]).encode() + b"".join(chunks)


def asked_directly(upstream: Upstream, case: str, chunk: int, cut: int) -> Played:
    """The case again, of a server that says what was recorded, each answer cut once."""
    answers = [on_the_wire(said, chunk) for said in interactions(upstream.path(case))]

    async def behave(peer: Peer) -> None:
        while answers:
            await peer.request()
            answer = answers.pop(0)
            await peer.send(answer[:cut])
            await asyncio.sleep(0)
            await peer.send(answer[cut:])
        await peer.left()

    async def check() -> Played:
        async with loopback(behave) as up:
            link = replace(upstream.link(up.url), transport=Transport())
            return await ask_twice(upstream, link, case)

    return run(check())


@pytest.mark.parametrize(
    ("upstream", "case"),
    [
        pytest.param(upstream, case, id=f"{upstream.name}-{case}")
        for upstream in upstreams()
        for case in upstream.cases
    ],
)
def test_recordings_say_the_same_through_both(upstream: Upstream, case: str) -> None:
    own, library = asked_directly(upstream, case, chunk=100, cut=300), play(upstream.name, case)
    assert comparable(own) == comparable(library)


def comparable(played: Played) -> list[object]:
    """Errors are compared by what they say."""
    answers = (played.plain, played.streamed)
    errors = [(repr(one.error), vars(one.error) if one.error else {}) for one in answers]
    return [[replace(one, error=None) for one in answers], errors]


@pytest.mark.parametrize("upstream", upstreams(), ids=lambda upstream: upstream.name)
def test_where_they_are_cut_changes_nothing(upstream: Upstream) -> None:
    played = play(upstream.name, "text")
    sizes = [len(on_the_wire(said, 50)) for said in interactions(upstream.path("text"))]
    for cut in range(1, max(sizes), 29):
        assert asked_directly(upstream, "text", chunk=50, cut=cut) == played


def test_a_head_with_a_clients_own_key_is_not_remembered() -> None:
    async def check() -> None:
        async with loopback(faults.nothing) as up:
            ways: tuple[tuple[Literal["", "bearer"], int], ...] = (("bearer", 0), ("", 1))
            for opened_by, more in ways:
                link = replace(up.link, headers={"x-of": opened_by}, opened_by=opened_by)
                before = kept_start_of_head.cache_info().currsize
                with pytest.raises(GatewayError):
                    await link.opened_with("sk-own").post("/", b"{}", soon())
                assert kept_start_of_head.cache_info().currsize == before + more

    kept_start_of_head.cache_clear()
    run(check())
