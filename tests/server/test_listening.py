"""The wire below HTTP: what is none, and what does not arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import orjson
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from middleware.server.transport.listening import Protocol

PATIENCE = 0.15
HEAD = b"POST / HTTP/1.1\r\nhost: a\r\n"
BODY = b"content-length: 5\r\n\r\n"
ONE = HEAD + BODY + b"12345"
LAST = HEAD + b"connection: close\r\n" + BODY + b"12345"
CUT = b"transfer-encoding: chunked\r\n\r\nZZ\r\n"


class Hasty(Protocol):
    seconds = PATIENCE


class Patient(Protocol):
    seconds = 60.0


async def echo(_: Scope, receive: Receive, send: Send) -> None:
    """Read the whole body, then say so."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        more = message["more_body"]
    await say(send, b"done")


async def say(send: Send, body: bytes, more: bool = False, begun: bool = False) -> None:
    if not begun:
        await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def refuse_at_once(_: Scope, __: Receive, send: Send) -> None:
    """Answer before the body is here."""
    await say(send, b"refused")


async def stream_slowly(_: Scope, __: Receive, send: Send) -> None:
    await say(send, b"first", more=True)
    await asyncio.sleep(PATIENCE * 3)
    await say(send, b"last", begun=True)


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bytes]]


def talk(app: Any, protocol: type[Protocol], script: Talk) -> bytes:
    """Serve an app and talk to it on a raw connection; returns what the script heard."""

    async def scene() -> bytes:
        config = uvicorn.Config(app, log_level="critical", interface="asgi3", ws="none")
        config.load()
        server = uvicorn.Server(config)
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(
            lambda: protocol(config, server.server_state, {}), "127.0.0.1", 0
        )
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        try:
            async with asyncio.timeout(10):
                return await script(reader, writer)
        finally:
            writer.close()
            listening.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            await asyncio.gather(*server.server_state.tasks, return_exceptions=True)

    return asyncio.run(scene())


def sending(*pieces: bytes) -> Talk:
    """Send these, then listen until the server closes."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        return await reader.read()

    return script


def answers(heard: bytes) -> list[tuple[int, bytes]]:
    """Statuses and bodies on one connection."""
    found = []
    while heard:
        head, _, rest = heard.partition(b"\r\n\r\n")
        status = int(head.split(b" ")[1])
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        found.append((status, rest[:length]))
        heard = rest[length:]
    return found


def refusal(heard: bytes) -> tuple[int, str]:
    ((status, body),) = answers(heard)
    assert heard.startswith(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode())
    assert b"connection: close" in heard
    error = orjson.loads(body)["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_http")
    assert set(error) == {"message", "type", "param", "code"}
    return status, error["message"]


NO_HTTP = (
    b"garbage\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/1.1\r\nhost a\r\n\r\n",
    HEAD + b"content-length: -1\r\n\r\n",
    HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\n",
    HEAD + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    HEAD + b"transfer-encoding: chunked\r\n\r\nZZ\r\n",
    HEAD + b"transfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
)


@pytest.mark.parametrize("data", NO_HTTP, ids=range(len(NO_HTTP)))
def test_what_is_no_http_is_refused_in_openais_shape(data: bytes) -> None:
    status, message = refusal(talk(echo, Patient, sending(data)))
    assert status == 400
    assert "not valid HTTP/1.1" in message


# Cut where the whole would stand; each must end by itself.
LATE = {
    "in the first line": b"POST / HT",
    "in the head": HEAD,
    "before the body": HEAD + BODY,
    "in the body": HEAD + BODY + b"123",
    "in a chunked body": HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\n12",
}


@pytest.mark.parametrize("data", LATE.values(), ids=LATE)
def test_a_request_that_does_not_arrive_is_ended(data: bytes) -> None:
    status, message = refusal(talk(echo, Hasty, sending(data)))
    assert status == 408
    assert message == f"The request did not arrive within {PATIENCE} seconds."


def test_dripping_does_not_help() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        listening = asyncio.create_task(reader.readuntil(b"}}"))
        writer.write(HEAD)
        while not listening.done():
            writer.write(b"x-drop: a\r\n")
            await asyncio.wait([listening], timeout=PATIENCE / 10)
        return await listening

    assert refusal(talk(echo, Hasty, script))[0] == 408


def test_a_connection_nobody_speaks_on_is_closed_without_a_word() -> None:
    assert talk(echo, Hasty, sending()) == b""


def test_nobody_looks_at_a_connection_that_is_gone() -> None:
    looks = []

    class Watched(Hasty):
        def _look(self) -> None:
            looks.append(self)

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.close()
        await asyncio.sleep(PATIENCE * 2)
        return b""

    talk(echo, Watched, script)
    assert looks == []


def test_each_request_of_a_connection_has_its_time() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        heard = b""
        for _ in range(4):
            writer.write(HEAD + b"content-length: 5\r\n\r\n12345")
            heard += await reader.readuntil(b"0\r\n\r\n")
            await asyncio.sleep(PATIENCE / 2)
        return heard

    assert talk(echo, Hasty, script).count(b"done") == 4


@pytest.mark.parametrize("pause", [0, PATIENCE * 2])
def test_a_second_request_that_does_not_arrive_is_ended_too(pause: float) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(HEAD + BODY + b"12345")
        await reader.readuntil(b"0\r\n\r\n")
        await asyncio.sleep(pause)
        writer.write(HEAD)
        return await reader.read()

    assert refusal(talk(echo, Hasty, script))[0] == 408


def test_what_is_no_http_is_refused_behind_an_answer_too() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(HEAD + BODY + b"12345")
        await reader.readuntil(b"0\r\n\r\n")
        writer.write(b"garbage\r\n\r\n")
        return await reader.read()

    assert refusal(talk(echo, Patient, script))[0] == 400


def test_a_long_answer_is_not_cut() -> None:
    request = HEAD + b"connection: close\r\n" + BODY + b"12345"
    heard = talk(stream_slowly, Hasty, sending(request))
    assert b"first" in heard
    assert heard.endswith(b"last\r\n0\r\n\r\n")


def followed_by(data: bytes) -> bytes:
    """What is heard when this follows a request whose answer is under way."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(HEAD + BODY + b"12345")
        heard = await reader.readuntil(b"first\r\n")
        writer.write(data)
        return heard + await reader.read()

    _, _, said = talk(stream_slowly, Hasty, script).partition(b"\r\n\r\n")
    return said


WHOLE = b"5\r\nfirst\r\n4\r\nlast\r\n0\r\n\r\n"


def test_half_a_request_waits_for_the_answer_to_the_one_before() -> None:
    said = followed_by(HEAD)
    assert said.startswith(WHOLE)
    assert refusal(said.removeprefix(WHOLE))[0] == 408


@pytest.mark.parametrize("before", [b"", ONE])
def test_what_is_no_http_is_refused_behind_every_answer_that_is_owed(before: bytes) -> None:
    said = followed_by(before + b"garbage\r\n\r\n")
    assert said.startswith(WHOLE)
    assert said.count(WHOLE) == (2 if before else 1)
    _, _, refused = said.rpartition(b"0\r\n\r\n")
    assert refusal(refused)[0] == 400


@pytest.mark.parametrize("app", [echo, stream_slowly])
@pytest.mark.parametrize("end", [b"garbage\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", HEAD + CUT])
def test_a_request_keeps_its_answer_whatever_comes_in_one_piece_with_it(
    app: Any, end: bytes
) -> None:
    heard = talk(app, Patient, sending(ONE + end))
    whole, _, refused = heard.rpartition(b"0\r\n\r\n")
    assert whole.startswith(b"HTTP/1.1 200 OK")
    assert (b"done" if app is echo else b"last") in whole
    assert refusal(refused)[0] == 400


def test_a_broken_body_behind_a_good_request_is_not_given_to_the_app() -> None:
    told = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        told.append(scope["path"])
        await stream_slowly(scope, receive, send)

    heard = talk(app, Patient, sending(ONE, HEAD.replace(b"/", b"/two", 1) + CUT))
    assert told == ["/"]
    assert heard.count(b"HTTP/1.1 ") == 2


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


def test_an_endless_head_is_refused() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        listening = asyncio.create_task(reader.read())
        writer.write(HEAD)
        while not listening.done():
            writer.write(b"x-drop: %b\r\n" % (b"a" * 32_000))
            await asyncio.wait([listening], timeout=0.01)
        return await listening

    assert refusal(talk(echo, Patient, script))[0] == 431


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


def test_nothing_is_said_behind_an_answer_that_came_before_the_body() -> None:
    heard = talk(refuse_at_once, Hasty, sending(HEAD + BODY + b"123"))
    assert heard.count(b"HTTP/1.1") == 1
    assert heard.endswith(b"refused\r\n0\r\n\r\n")


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
