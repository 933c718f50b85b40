"""However an upstream's answer ended: it is recorded as it was, and heard again as it was live."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from adapters.protocol import Json
from middleware.cassettes.file import cassette_text, write_cassette
from middleware.cassettes.record.merge import Policy
from middleware.server.transport.serving import settings
from tests.cassette.core.desk import (
    REPLAYED,
    asking,
    cassette,
    desk,
    folded,
    pieces,
    same_writes,
    streamed,
)
from tests.server.transport.paper import connected
from tests.server.transport.talking import posted
from tests.support.day_one import completion
from tests.support.door import Heard
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

CONFIG = """
[upstreams.up]
kind = "compatible"
base_url = "URL/v1"
api_key = "k"
timeouts = { first_event = 9, idle = 9, plain = 9 }
[models.m]
upstream = "up"
name = "up-1"
retry = 0
drop = ["user"]
"""
SSE, JSON = "content-type: text/event-stream", "content-type: application/json"


def event(text: str, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    return b"data: " + orjson.dumps({"model": "up-1", "choices": [choice]}) + b"\n\n"


EVENTS = (event("One, "), event("two, "), event("three."), event("", "stop"), b"data: [DONE]\n\n")


def streams(*events: bytes, then: str = "end") -> Behaviour:
    """Say these events, and then end, break off, or fall silent."""

    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.start(SSE, "retry-after: 5")  # some send it with good answers too
        for one in events:
            await peer.chunk(one)
            await asyncio.sleep(0.004)  # each is read before the next
        if then == "end":
            await peer.chunk(b"")
        elif then == "reset":
            await asyncio.sleep(0.05)  # what was said arrives first
            peer.reset()
        elif then == "silence":
            await peer.left()

    return behave


def answers(body: bytes, *headers: str, status: str = "200 OK") -> Behaviour:
    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.answer(body, JSON, *headers, status=status)

    return behave


async def resets(peer: Peer) -> None:
    await peer.request()
    peer.reset()


async def hangs(peer: Peer) -> None:
    await peer.request()
    await peer.left()


def fails(status: int, *headers: str) -> Behaviour:
    said = orjson.dumps({"error": {"message": "no", "type": "t", "code": "c"}})
    return answers(said, *headers, status=f"{status} Failed")


class Case(NamedTuple):
    name: str
    behaves: Behaviour
    stream: bool
    status: int
    """What the client gets."""
    ended: str
    """Of the exchange."""
    error: str = ""
    """The code the client reads."""


HALF = completion()[:40]
CASES: Sequence[Case] = (
    Case("whole stream", streams(*EVENTS), True, 200, "whole"),
    Case("whole answer", answers(completion()), False, 200, "whole"),
    Case("an answer to a stream", answers(completion()), True, 200, "whole"),
    Case("stream without DONE", streams(*EVENTS[:4]), True, 200, "whole"),
    Case("stream without reason", streams(*EVENTS[:3]), True, 200, "whole", "upstream_truncated"),
    Case("cut", streams(*EVENTS[:2], then="cut"), True, 200, "cut", "upstream_truncated"),
    Case("reset", streams(*EVENTS[:2], then="reset"), True, 200, "cut", "upstream_truncated"),
    Case("cut at once", streams(EVENTS[0][:30], then="cut"), True, 502, "cut", "upstream_trunc"),
    Case("half an event", streams(EVENTS[0], EVENTS[1][:30]), True, 200, "whole", "upstream_trunc"),
    Case("reset at once", resets, True, 502, "reset", "upstream_unreachable"),
    Case("reset, plain", resets, False, 502, "reset", "upstream_unreachable"),
    Case("silence", hangs, True, 504, "timeout", "upstream_timeout"),
    Case("silence, plain", hangs, False, 504, "timeout", "upstream_timeout"),
    Case("stall", streams(EVENTS[0], then="silence"), True, 200, "timeout", "upstream_timeout"),
    Case("half a JSON", answers(HALF), False, 502, "whole", "upstream_not_json"),
    Case("half a JSON to a stream", answers(HALF), True, 502, "whole", "upstream_not_json"),
    Case("nothing", answers(b""), False, 502, "whole", ""),
    Case("400", fails(400), False, 400, "whole", ""),
    Case("401", fails(401), False, 502, "whole", "upstream_auth"),
    Case("429", fails(429, "retry-after: 7"), True, 429, "whole", ""),
    Case("500", fails(500), False, 500, "whole", ""),
    Case("503", fails(503, "retry-after: 3"), True, 503, "whole", "overloaded"),
    Case("529", fails(529), False, 503, "whole", "overloaded"),
)


def body_of(case: Case) -> Json:
    body = asking(case.name) | {"user": "me"}
    return streamed(body) if case.stream else body


async def _live(folder: Path, case: Case) -> Heard:
    async with loopback(case.behaves) as up:
        config = CONFIG.replace("URL", up.url)
        if case.ended == "timeout":
            config = config.replace("= 9", "= 0.2")
        async with desk(folder, config, "record", policy=Policy(keep_errors=True)) as recording:
            return await recording.ask(body_of(case))


async def _played(folder: Path, body: Json) -> Heard:
    async with desk(folder, REPLAYED, "replay") as playing:
        return await playing.ask(body)


def error_of(heard: Heard) -> str:
    told = folded(heard).get("error")
    return str(told["code"]) if told else ""


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_an_ending_is_heard_as_it_was_live(tmp_path: Path, case: Case) -> None:
    live = asyncio.run(_live(tmp_path, case))
    (turn,) = cassette(tmp_path).turns
    assert live.status == case.status, live.body
    assert case.error in error_of(live)
    assert turn.exchanges[-1].ended == case.ended
    assert turn.is_whole is (live.status == 200 and not error_of(live))
    again = asyncio.run(_played(tmp_path, body_of(case)))
    assert again.status == live.status
    assert same_writes(again, live)
    for name in ("retry-after", "x-should-retry", "content-type", "x-usetool-warnings"):
        assert again.headers.get(name) == live.headers.get(name)
    assert again.headers["x-usetool-replay"] == "default turn=1 of=1"


@pytest.mark.parametrize("case", [case for case in CASES if case.ended != "whole"])
def test_an_ending_by_hand_needs_no_more_than_its_word(tmp_path: Path, case: Case) -> None:
    live = asyncio.run(_live(tmp_path, case))
    found = cassette(tmp_path)
    (turn,) = found.turns
    bare = tuple(replace(one, failure=None) for one in turn.exchanges)
    edited = replace(found, turns=(replace(turn, exchanges=bare),))
    write_cassette(tmp_path / "default.yaml", cassette_text(edited))
    again = asyncio.run(_played(tmp_path, body_of(case)))
    assert (again.status, error_of(again)) == (live.status, error_of(live))


@pytest.mark.parametrize("case", [case for case in CASES if case.status == 200])
def test_what_broke_off_as_a_stream_fails_as_a_whole_answer_and_the_reverse(
    tmp_path: Path, case: Case
) -> None:
    live = asyncio.run(_live(tmp_path, case))
    body = body_of(case)
    crossed = {**body, "stream": not case.stream}
    crossed.pop("stream_options", None)
    again = asyncio.run(_played(tmp_path, crossed))
    if case.error:
        assert error_of(again) == error_of(live)
        assert again.status >= 500
    else:
        assert folded(again)["content"] == folded(live)["content"]


async def _written(folder: Path, body: Json) -> list[bytes]:
    """A replayed stream as it leaves on a connection, write by write."""
    async with desk(folder, REPLAYED, "replay") as playing:
        protocol, paper = connected(settings(playing.door.app, "critical"))
        protocol.data_received(posted(body))
        return await paper.until_whole()


def test_every_piece_is_a_chunk_though_not_a_write(tmp_path: Path) -> None:
    case = Case("many", streams(*[event("word ")] * 60, *EVENTS[3:]), True, 200, "whole")
    asyncio.run(_live(tmp_path, case))
    again = asyncio.run(_played(tmp_path, body_of(case)))
    writes = asyncio.run(_written(tmp_path, body_of(case)))
    _, _, body = b"".join(writes).partition(b"\r\n\r\n")
    chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces(again) if piece]
    assert body == b"".join(chunks) + b"0\r\n\r\n"
    assert len(chunks) > 60
    assert len(writes) < 10
