"""In how many writes answers leave, and what is in them."""

from __future__ import annotations

import asyncio
import io
import re
from typing import Any

import orjson
import pytest
from starlette.types import Receive, Scope, Send

from middleware import config
from middleware.server.app import create
from middleware.server.transport.serving import settings
from tests.server.transport.paper import BEFORE, connected, heard, serving
from tests.server.transport.talking import BODY, HEAD, ONE, Hasty, answers, echo, posted, say
from tests.support.adapters import Wait, repeating
from tests.support.door import DEMO, OPENED, TEXT, chat, door


async def measured(_: Scope, __: Receive, send: Send) -> None:
    length = (b"content-length", b"4")
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": b"done"})


async def in_pieces(_: Scope, __: Receive, send: Send) -> None:
    await say(send, b"one", more=True)
    await say(send, b"", more=True, begun=True)
    await say(send, b"two", more=True, begun=True)
    await say(send, b"three", begun=True)


def test_a_plain_answer_is_one_write() -> None:
    assert heard(measured, ONE) == [BEFORE + b"content-length: 4\r\n\r\ndone"]
    chunked = BEFORE + b"transfer-encoding: chunked\r\n\r\n4\r\ndone\r\n0\r\n\r\n"
    assert heard(echo, ONE) == [chunked]


def test_a_server_waits_for_what_an_app_still_does() -> None:
    async def scene() -> None:
        may_end = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await measured(scope, receive, send)
            await may_end.wait()

        protocol, paper = serving(app)
        protocol.data_received(ONE)
        await paper.until(1)
        protocol.data_received(ONE)
        await paper.until(2)
        assert len(protocol.tasks) == 2
        protocol.connection_lost(None)
        assert len(protocol.tasks) == 2
        may_end.set()
        await asyncio.sleep(0.01)
        assert not protocol.tasks

    asyncio.run(scene())


def test_a_server_waits_for_nothing_that_is_done() -> None:
    async def scene() -> None:
        protocol, paper = serving(measured)
        for count in (1, 2, 3):
            protocol.data_received(ONE)
            await paper.until(count)
            assert len(protocol.tasks) == 1
        protocol.connection_lost(None)
        assert not protocol.tasks

    asyncio.run(scene())


def test_a_head_leaves_with_the_first_piece_and_the_end_with_the_last() -> None:
    first, *rest = heard(in_pieces, ONE, 3)
    assert first == BEFORE + b"transfer-encoding: chunked\r\n\r\n3\r\none\r\n"
    assert rest == [b"3\r\ntwo\r\n", b"5\r\nthree\r\n0\r\n\r\n"]


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_of_the_gateway_that_is_here_whole_is_one_write(stream: bool) -> None:
    async def scene() -> list[bytes]:
        app = create(config.parse(DEMO, environment={}), io.StringIO())
        protocol, paper = connected(settings(app, "critical"))
        body = orjson.dumps(chat("demo", stream=stream))
        head = (
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n"
        )
        protocol.data_received(head % len(body) + body)
        return await paper.until(1)

    first, *rest = asyncio.run(scene())
    assert first.startswith(BEFORE)
    head, _, body = first.partition(b"\r\n\r\n")
    if stream:
        assert b'"role":"assistant"' in body
        assert (first, *rest)[-1].endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    else:
        assert b"content-length: %d\r\n" % len(body) in head + b"\r\n"
        assert rest == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("begun", [False, True])
def test_a_client_that_leaves_ends_the_call_upstream_in_the_next_turns_of_the_loop(
    stream: bool, begun: bool
) -> None:
    async def scene() -> None:
        wait = Wait()
        model = repeating(*([(OPENED, TEXT)] if begun else []), wait)
        there = door(model)
        protocol, paper = connected(settings(there.app, "critical"))
        protocol.data_received(posted(chat(stream=stream)))
        await wait.until_reached()
        before = list(paper.writes)
        protocol.connection_lost(None)
        for _ in range(5):
            await asyncio.sleep(0)
        assert model.left.is_set()
        assert paper.writes == before
        (line,) = there.lines()
        assert (line["client_gone"], line["status"]) == (True, 200 if stream and begun else 499)

    asyncio.run(scene())


@pytest.mark.parametrize("app", [measured, echo])
def test_what_is_asked_by_head_has_no_body(app: Any) -> None:
    asked = HEAD.replace(b"POST", b"HEAD") + b"\r\n"
    (said,) = heard(app, asked)
    assert said == BEFORE + (b"content-length: 4\r\n\r\n" if app is measured else b"\r\n")
    assert len(heard(app, asked + ONE, 2)) == 2


def test_requests_of_one_piece_are_answered_in_their_order() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/0":
            await asyncio.sleep(0.02)
        body = (await receive())["body"]
        await say(send, scope["path"].encode() + b" " + body)

    asked = b"".join(ONE.replace(b"/ ", b"/%d " % number) for number in range(3))
    said = heard(app, asked, 3)
    assert re.findall(rb"/\d 12345", b"".join(said)) == [b"/0 12345", b"/1 12345", b"/2 12345"]
    assert len(said) == 3


def test_the_old_version_has_its_connection_closed() -> None:
    async def scene() -> None:
        protocol, paper = serving(measured)
        protocol.data_received(b"GET / HTTP/1.0\r\n\r\n")
        (said,) = await paper.until(1)
        assert b"\r\nconnection: close\r\n" in said
        assert paper.closed

    asyncio.run(scene())


def test_a_body_is_told_when_it_is_asked_for() -> None:
    async def scene() -> None:
        protocol, paper = serving(echo)
        protocol.data_received(HEAD + b"expect: 100-Continue\r\n" + BODY)
        assert await paper.until(1) == [b"HTTP/1.1 100 Continue\r\n\r\n"]
        protocol.data_received(b"12345")
        assert len(await paper.until(2)) == 2

    asyncio.run(scene())


def test_what_a_slow_client_has_not_taken_holds_the_rest_back() -> None:
    async def scene() -> None:
        protocol, paper = serving(in_pieces)
        protocol.pause_writing()
        protocol.data_received(ONE)
        assert await paper.until(0) == []
        protocol.resume_writing()
        assert len(await paper.until(3)) == 3

    asyncio.run(scene())


@pytest.mark.parametrize("body", [b"much too long", b"few"])
def test_a_body_of_another_length_than_was_said_is_no_answer(body: bytes) -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        length = (b"content-length", b"4")
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})

    async def scene() -> None:
        protocol, paper = serving(app)
        protocol.data_received(ONE)
        assert await paper.until(0) == []
        assert paper.closed

    asyncio.run(scene())


@pytest.mark.parametrize("header", [(b"x-a", b"1\r\nx-evil: 1"), (b"x a", b"1"), (b"x-a\n", b"1")])
def test_no_header_is_two(header: tuple[bytes, bytes]) -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [header]})
        await send({"type": "http.response.body", "body": b"done"})

    assert b"evil" not in b"".join(heard(app, ONE, 0))


def test_a_head_that_waits_for_its_body_is_not_followed_by_a_probe() -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(0.1)
        await send({"type": "http.response.body", "body": b"done"})

    async def scene() -> None:
        protocol, paper = serving(app)
        protocol.data_received(ONE)
        await asyncio.sleep(0)
        assert protocol.eof_received()
        *probes, answer = await paper.until(3)
        assert set(probes) == {b"HTTP/1.1 100 Continue\r\n\r\n"}
        assert answer.startswith(BEFORE)

    asyncio.run(scene())


@pytest.mark.parametrize("after", [b"", b"\r\n"], ids=["nothing", "an empty line"])
def test_a_connection_on_which_nothing_follows_is_closed(after: bytes) -> None:
    async def scene() -> None:
        protocol, paper = serving(measured, keep_alive=0)
        protocol.data_received(ONE)
        assert answers((await paper.until(1))[0].replace(b"date: today\r\n", b"")) == [
            (200, b"done")
        ]
        before = paper.is_closing()
        if after:
            protocol.data_received(after)
        await asyncio.sleep(Hasty.seconds * 2)
        assert (before, paper.is_closing()) == (False, True)
        protocol.connection_lost(None)

    asyncio.run(scene())
