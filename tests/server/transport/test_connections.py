"""The wire below HTTP: hosts, heads, halves of connections, and answers that are not read."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from tests.server.transport.paper import connected
from tests.server.transport.talking import (
    BODY,
    HEAD,
    ONE,
    PATIENCE,
    Hasty,
    Patient,
    Talk,
    answers,
    echo,
    refusal,
    say,
    sending,
    stream_slowly,
    talk,
)

LAST = HEAD + b"connection: close\r\n" + BODY + b"12345"


async def refuse_at_once(_: Scope, __: Receive, send: Send) -> None:
    """Answer before the body is here."""
    await say(send, b"refused")


HOSTS = {
    "none": b"GET / HTTP/1.1\r\n\r\n",
    "two": b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    "the same twice": b"GET / HTTP/1.1\r\nhost: a\r\nHost: a\r\n\r\n",
    "two in the old version": b"GET / HTTP/1.0\r\nhost: a\r\nhost: b\r\n\r\n",
}


@pytest.mark.parametrize("request_", HOSTS.values(), ids=HOSTS)
def test_a_request_without_one_host_is_refused(request_: bytes) -> None:
    status, message = refusal(talk(tell, Patient, sending(request_)))
    assert status == 400
    assert "Host" in message


def test_the_old_version_needs_no_host() -> None:
    heard = talk(tell, Patient, sending(b"GET / HTTP/1.0\r\n\r\n"))
    assert answers(heard) == [(200, b"GET  ")]


def test_trailers_are_no_headers() -> None:
    head = HEAD + b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n"
    trailers = b"authorization: Bearer K\r\nhost: b\r\nx-api-key: K\r\nupgrade: h2c\r\n\r\n"
    for pieces in ((head + trailers,), (head, trailers)):
        found = answers(talk(tell, Patient, sending(*pieces)))
        assert found == [(200, b"POST host,connection,transfer-encoding 12345")]


TRAILER = HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"


def flooding(begun: bytes, piece: bytes) -> Talk:
    """Send this for ever; return what is heard until the server closes."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        listening = asyncio.create_task(reader.read())
        writer.write(begun)
        sent = 0
        while not listening.done():
            writer.write(piece)
            sent += len(piece)
            await asyncio.wait([listening], timeout=0.01)
        assert sent < 4 << 20
        return await listening

    return script


@pytest.mark.parametrize("begun", [HEAD, TRAILER], ids=["head", "trailer"])
@pytest.mark.parametrize("piece", [b"x-drop: %b\r\n" % (b"a" * 32_000), b"x" * 32_000])
def test_an_endless_head_or_trailer_is_refused(begun: bytes, piece: bytes) -> None:
    assert refusal(talk(echo, Patient, flooding(begun, piece)))[0] == 431


def test_the_body_of_one_request_is_not_the_head_of_the_next() -> None:
    body = b"a" * 255_000
    first = HEAD + b"content-length: %d\r\n\r\n" % len(body) + body
    second = HEAD + b"x-long: %b\r\n" % (b"a" * 12_000) + BODY + b"12345"

    async def scene() -> list[bytes]:
        protocol, paper = connected(uvicorn.Config(echo, http=Patient, lifespan="off"))
        for piece in (first + second[:100], second[100:-5], second[-5:]):
            protocol.data_received(piece)
        return await paper.until(2)

    assert [head.split(b"\r\n")[0] for head in asyncio.run(scene())] == [b"HTTP/1.1 200 OK"] * 2


def test_an_endless_trailer_behind_an_answer_ends_the_connection() -> None:
    heard = talk(refuse_at_once, Patient, flooding(TRAILER, b"x" * 32_000))
    assert heard.endswith(b"refused\r\n0\r\n\r\n")


async def answer_late(_: Scope, receive: Receive, send: Send) -> None:
    """Answers after a while, unless the client is gone by then."""
    gone = asyncio.create_task(_until_gone(receive))
    await asyncio.wait([gone], timeout=PATIENCE * 2)
    if not gone.done():
        gone.cancel()
        await say(send, b"late")


@pytest.mark.parametrize("app", [answer_late, stream_slowly])
@pytest.mark.parametrize("together", [True, False])
def test_a_client_that_only_ended_its_sending_gets_its_answer(app: Any, together: bool) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(ONE)
        await asyncio.sleep(0 if together else PATIENCE / 2)
        writer.write_eof()
        return await reader.read()

    heard = talk(app, Patient, script)
    assert b"HTTP/1.1 200 OK" in heard
    assert heard.endswith(b"late\r\n0\r\n\r\n" if app is answer_late else b"last\r\n0\r\n\r\n")


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("linger", [0, PATIENCE / 2])
def test_a_client_that_closed_has_left_at_once(begun: bool, linger: float) -> None:
    left = asyncio.Event()

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        if begun:
            await say(send, b"first", more=True)
        await _until_gone(receive)
        left.set()

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(ONE)
        await asyncio.sleep(linger)
        writer.close()
        await asyncio.wait_for(left.wait(), 0.5)
        return b""

    talk(app, Patient, script)


def test_half_a_request_with_its_end_is_no_request() -> None:
    told = []

    async def app(scope: Scope, receive: Receive, _: Send) -> None:
        message = await receive()
        while message.get("more_body"):
            message = await receive()
        told.append(message["type"])

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(HEAD + BODY + b"123")
        writer.write_eof()
        return await reader.read()

    assert talk(app, Patient, script) == b""
    assert told == ["http.disconnect"]


def test_a_client_that_leaves_behind_two_requests_leaves_the_first_too() -> None:
    left = asyncio.Event()

    async def app(_: Scope, receive: Receive, __: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write((HEAD + BODY + b"12345") * 2)
        await asyncio.sleep(0.05)
        writer.transport.abort()
        await asyncio.wait_for(left.wait(), 5)
        return b""

    talk(app, Patient, script)


# Answers that are not read ---------------------------------------------------------------------


LONG = b"x" * (1 << 20)


class Stern(Patient):
    @property
    def idle(self) -> float:
        return PATIENCE


async def never_ending(_: Scope, receive: Receive, send: Send) -> None:
    """Streams until its client has gone."""
    await say(send, b"", more=True)
    gone = asyncio.create_task(_until_gone(receive))
    while not gone.done():
        await say(send, LONG, more=True, begun=True)
        await asyncio.sleep(0)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def one_long_answer(_: Scope, __: Receive, send: Send) -> None:
    length = (b"content-length", b"%d" % (len(LONG) * 16))
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": LONG * 16})


@pytest.mark.parametrize("app", [never_ending, one_long_answer])
@pytest.mark.parametrize("kept", [b"", b"connection: close\r\n"])
def test_an_answer_that_nobody_reads_is_ended(app: Any, kept: bytes) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # as sockets have it
        writer.write(HEAD + kept + BODY + b"12345")
        await asyncio.sleep(PATIENCE * 4)
        writer.transport.resume_reading()  # type: ignore[attr-defined]  # as sockets have it
        heard = b""
        with suppress(ConnectionError):
            while piece := await reader.read(1 << 20):
                heard += piece
        assert heard.startswith(b"HTTP/1.1 200 OK")
        assert len(heard) < len(LONG) * 15
        return heard

    talk(app, Stern, script)


def test_an_answer_that_is_read_slowly_comes_to_its_end() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(LAST)
        heard = b""
        while piece := await reader.read(1 << 19):
            heard += piece
            await asyncio.sleep(PATIENCE / 10)
        return heard

    assert len(talk(one_long_answer, Stern, script)) > len(LONG) * 16


def test_only_so_many_requests_wait_behind_another() -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await asyncio.sleep(0.01)
        start = {"type": "http.response.start", "status": 200}
        await send({**start, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b"done"})

    *good, (status, body) = answers(talk(app, Patient, sending(ONE * 3000)))
    assert good == [(200, b"done")] * 101
    assert (status, b"wait for their answers" in body) == (400, True)


def test_nothing_is_said_behind_an_answer_that_came_before_the_body() -> None:
    heard = talk(refuse_at_once, Hasty, sending(HEAD + BODY + b"123"))
    assert heard.count(b"HTTP/1.1") == 1
    assert heard.endswith(b"refused\r\n0\r\n\r\n")


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_who_still_sends_is_not_cut_off_from_its_answer(version: bytes) -> None:
    size, calls = 8 << 20, []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        calls.append(scope["path"])
        await refuse_at_once(scope, receive, send)

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        head = HEAD.replace(b"1.1", version) + b"connection: close\r\ncontent-length: %d\r\n\r\n"
        writer.write(head % size + b"x" * size + LAST)
        await writer.drain()
        return await reader.read()

    heard = talk(app, Patient, script)
    assert b"\r\nconnection: close\r\n" in heard
    assert b"refused" in heard
    assert calls == ["/"]  # what stands behind a last request is none


async def tell(scope: Scope, receive: Receive, send: Send) -> None:
    """Say what arrived: the method, the names of the headers, and the body."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    names = b",".join(name for name, _ in scope["headers"])
    said = b"%b %b %b" % (scope["method"].encode(), names, body)
    start = {"type": "http.response.start", "status": 200}
    await send({**start, "headers": [(b"content-length", b"%d" % len(said))]})
    await send({"type": "http.response.body", "body": said})


# As Java's HttpClient sends it with every request on http://
OFFER = b"connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAA\r\nUpgrade: h2c\r\n"
KEPT = b"POST host,connection,http2-settings,"


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        (BODY + b"12345", KEPT + b"content-length 12345"),
        (
            b"transfer-encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n",
            KEPT + b"transfer-encoding 12345",
        ),
        (b"\r\n", KEPT[:-1] + b" "),
    ],
)
@pytest.mark.parametrize("cut", [1, 30, 1000])
def test_a_request_that_offers_http2_is_answered_without(
    rest: bytes, told: bytes, cut: int
) -> None:
    sent = (HEAD + OFFER + rest) * 2 + LAST
    pieces = [sent[at : at + cut] for at in range(0, len(sent), cut)]
    found = answers(talk(tell, Patient, sending(*pieces)))
    assert found[:2] == [(200, told)] * 2
    assert found[2] == (200, b"POST host,connection,content-length 12345")
    assert len(found) == 3


def test_nobody_is_switched_to_another_protocol() -> None:
    offer = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    found = answers(talk(tell, Patient, sending(offer, LAST)))
    assert [status for status, _ in found] == [200, 200]


@pytest.mark.parametrize("offer", [b"", b"connection: upgrade\r\nupgrade: h2c\r\n"])
def test_no_tunnel_is_opened(offer: bytes) -> None:
    tunnel = b"CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n" + offer + b"\r\n"
    assert refusal(talk(tell, Patient, sending(tunnel)))[0] == 400
