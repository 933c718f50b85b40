"""The wire below HTTP: what is none, and what does not arrive."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from tests.server.transport.talking import (
    BODY,
    HEAD,
    ONE,
    PATIENCE,
    Hasty,
    Patient,
    echo,
    refusal,
    say,
    sending,
    stream_slowly,
    talk,
)

CUT = b"transfer-encoding: chunked\r\n\r\nZZ\r\n"


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


def test_behind_a_head_that_cannot_be_sent_another_can() -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200}
        with pytest.raises(RuntimeError, match="control character"):
            await send({**start, "headers": [(b"x-a", b"1\r\nx-b: 2")]})
        await send({**start, "status": 500, "headers": []})
        await say(send, b"sorry", begun=True)

    said = talk(app, Patient, sending(HEAD + b"connection: close\r\n" + BODY + b"12345"))
    assert said.startswith(b"HTTP/1.1 500 ")
    assert said.endswith(b"\r\nsorry\r\n0\r\n\r\n")
