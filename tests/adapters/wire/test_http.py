"""What can go wrong between us and an upstream, on real sockets: named, in time, asked once."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from adapters.errors import GatewayError, RateLimited, Truncated, Unavailable, UpstreamError
from adapters.wire.http import Link
from adapters.wire.reply import MAX_ANSWER
from tests.adapters.wire.asking import answering, ask, cut_chunks, silence, stalled
from tests.support.fold import run
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

SECRET = "our-own-secret-key"


async def failing(link: Link, seconds: float = 2) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await ask(link, seconds)
    return caught.value


# Before the answer -----------------------------------------------------------------------------


async def nothing(peer: Peer) -> None:
    await peer.request()


async def reset(peer: Peer) -> None:
    await peer.request()
    peer.reset()


async def half_a_head(peer: Peer) -> None:
    await peer.request()
    await peer.send(b"HTTP/1.1 200 OK\r\ncontent-")


async def garbage(peer: Peer) -> None:
    await peer.request()
    await peer.send(b"\x00\x01\x02 hello\r\n\r\n")


async def endless_head(peer: Peer) -> None:
    await peer.request()
    await peer.send(b"HTTP/1.1 200 OK\r\nx: " + b"a" * 200_000 + b"\r\n\r\n")


async def no_tls(peer: Peer) -> None:
    await peer.reader.read(1)
    await peer.answer(b"speak HTTP", status="400 Bad Request")


@pytest.mark.parametrize(
    ("behave", "code", "status", "words"),
    [
        (nothing, "upstream_unreachable", 502, "closed by it before it answered"),
        (reset, "upstream_unreachable", 502, "closed by it before it answered"),
        (half_a_head, "upstream_unreachable", 502, "closed by it before it answered"),
        (garbage, "upstream_unreachable", 502, "not HTTP"),
        (endless_head, "upstream_unreachable", 502, "not HTTP"),
        (silence, "upstream_timeout", 504, "did not answer in time"),
    ],
)
def test_a_failure_before_the_answer_is_asked_once_and_named(
    behave: Behaviour, code: str, status: int, words: str
) -> None:
    async def check() -> None:
        async with loopback(behave) as up:
            error = await failing(up.link, 0.2)
            assert isinstance(error, Unavailable)
            assert (error.code, error.status) == (code, status)
            # A silent upstream may still be at work: asking it again would double its load.
            assert error.again == ("elsewhere" if behave is silence else "same")
            assert words in error.message
            assert "127.0.0.1" not in error.message
            assert up.connections == 1

    run(check())


async def _closed_port() -> str:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    return f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda link, port: replace(link, base_url=port), "was refused"),
        (
            lambda link, port: replace(link, base_url=link.base_url.replace("http:", "https:")),
            "TLS",
        ),
        (lambda link, port: replace(link, proxy=port), "at the proxy"),
        (lambda link, port: replace(link, base_url="http://no-such-host.invalid"), "host name"),
    ],
    ids=["refused", "tls", "proxy", "dns"],
)
def test_a_connection_that_fails_says_how(change: Callable[[Link, str], Link], words: str) -> None:
    async def check() -> None:
        async with loopback(no_tls) as up:
            error = await failing(change(up.link, await _closed_port()))
            assert (error.code, error.status) == ("upstream_unreachable", 502)
            assert words in error.message
            assert "invalid" not in error.message

    run(check())


# The answer's status and headers ---------------------------------------------------------------


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden", "400 Bad Request"])
def test_a_refused_key_is_named_and_nothing_else_is(status: str) -> None:
    async def check() -> None:
        body = b'{"error":{"message":"invalid x-api-key"}}'
        async with loopback(answering(body, status=status)) as up:
            error = await failing(replace(up.link, key_from="The key comes from env:K."))
            told = f"Upstream 'up' answered {status[:3]}: invalid x-api-key"
            assert error.message == told + ". The key comes from env:K." * (status[0:3] != "400")

    run(check())


def test_what_does_not_run_can_be_started() -> None:
    async def check() -> None:
        async with loopback(nothing) as up:
            error = await failing(replace(up.link, started_by="acme serve"))
            assert "start it: `acme serve`" in error.message

    run(check())


def test_an_error_keeps_its_status_its_wait_and_its_id() -> None:
    body = b'{"error":{"message":"slow down, ' + SECRET.encode() + b'"}}'
    behave = answering(
        body,
        "retry-after: 7",
        "request-id: r1",
        "anthropic-ratelimit-requests-remaining: 0",
        "set-cookie: a=b",
        status="429 Too Many",
    )

    async def check() -> None:
        async with loopback(behave) as up:
            error = await failing(replace(up.link, secrets=(SECRET,)))
            assert isinstance(error, RateLimited)
            assert error.message == "Upstream 'up' answered 429: slow down, [secret]"
            assert error.retry_after == "7"
            assert error.headers == {
                "x-upstream-request-id": "r1",
                "x-ratelimit-remaining-requests": "0",
            }
            assert up.connections == 1

    run(check())


def test_a_redirect_is_never_followed_and_no_key_leaves() -> None:
    async def check() -> None:
        async with loopback(answering()) as trap:
            behave = answering(b"", f"location: {trap.url}/", status="307 Temporary Redirect")
            async with loopback(behave) as up:
                link = replace(up.link, headers={"authorization": f"Bearer {SECRET}"})
                assert (await failing(link)).code == "upstream_redirect"
            assert trap.connections == 0

    run(check())


def test_an_endless_error_body_is_read_only_in_part() -> None:
    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.start(status="500 Oops")
        while not peer.writer.is_closing():
            await peer.chunk(b"x" * (1 << 16))

    async def check() -> None:
        async with loopback(behave) as up:
            started = time.monotonic()
            error = await failing(up.link)
            assert error.status == 500
            assert len(error.message) < 400
            assert time.monotonic() - started < 1

    run(check())


@pytest.mark.parametrize("end", ["cut", "silent"])
def test_an_error_body_that_breaks_is_still_that_error(end: str) -> None:
    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.start(status="503 Busy")
        await peer.chunk(b"half a sen")
        if end == "silent":
            await peer.left()

    async def check() -> None:
        async with loopback(behave) as up:
            error = await failing(up.link, 1.0)
            assert error.message == "Upstream 'up' answered 503: half a sen"

    run(check())


# The body --------------------------------------------------------------------------------------


async def cut_length(peer: Peer) -> None:
    await peer.request()
    await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{")


async def reset_body(peer: Peer) -> None:
    await cut_chunks(peer)
    await asyncio.sleep(0.02)
    peer.reset()


async def bad_chunks(peer: Peer) -> None:
    await cut_chunks(peer)
    await asyncio.sleep(0.02)
    await peer.send(b"what?\r\n")


async def not_gzip(peer: Peer) -> None:
    await peer.request()
    await peer.answer(b"hello", "content-encoding: gzip")


async def too_much(peer: Peer) -> None:
    await peer.request()
    await peer.start()
    while True:
        await peer.chunk(b" " * (1 << 20))


async def bomb(peer: Peer) -> None:
    await peer.request()
    await peer.answer(gzip.compress(b" " * (MAX_ANSWER + 1)), "content-encoding: gzip")
    await peer.left()


@pytest.mark.parametrize(
    ("behave", "code", "status"),
    [
        (cut_length, "upstream_truncated", 502),
        (cut_chunks, "upstream_truncated", 502),
        (reset_body, "upstream_truncated", 502),
        (bad_chunks, "upstream_truncated", 502),
        (not_gzip, "upstream_bad_encoding", 502),
        (stalled, "upstream_timeout", 504),
        (too_much, "upstream_too_large", 502),
        (bomb, "upstream_too_large", 502),
    ],
)
def test_a_body_that_breaks_is_named_and_not_asked_for_again(
    behave: Behaviour, code: str, status: int
) -> None:
    async def check() -> None:
        async with loopback(behave) as up:
            error = await failing(up.link, 0.3 if code == "upstream_timeout" else 5)
            assert isinstance(error, UpstreamError)
            assert (error.code, error.status) == (code, status)
            assert isinstance(error, Truncated) == (code == "upstream_truncated")
            assert up.connections == 1

    run(check())


@pytest.mark.parametrize("encode", [None, gzip.compress], ids=["plain", "gzip"])
def test_a_good_body_is_whole(encode: Callable[[bytes], bytes] | None) -> None:
    body = "沈阳".encode() * 50_000
    sent = encode(body) if encode else body
    headers = ["content-encoding: gzip"] if encode else []

    async def check() -> None:
        async with loopback(answering(sent, *headers)) as up:
            assert await ask(up.link) == body

    run(check())


def test_json_is_fetched() -> None:
    async def check() -> None:
        async with loopback(answering(b'{"models":[]}')) as up:
            assert await up.link.fetch("GET", "/models", None, 2) == {"models": []}
            assert await up.link.fetch("POST", "/show", b"{}", 2) == {"models": []}
        async with loopback(answering(b"<html>")) as up:
            with pytest.raises(UpstreamError) as caught:
                await up.link.fetch("GET", "/models", None, 2)
            assert caught.value.code == "upstream_not_json"

    run(check())
