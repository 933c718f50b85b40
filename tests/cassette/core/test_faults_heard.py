"""Faults by hand, as clients hear them: beside a cassette, of a command, in a header."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from adapters.protocol import Json
from middleware.cassettes.replay.faults import read_faults
from middleware.server.transport.listening import Protocol
from tests.cassette.core.desk import (
    REPLAYED,
    Desk,
    asking,
    desk,
    folded,
    pieces,
    streamed,
)
from tests.cassette.core.test_endings import CONFIG, EVENTS, streams
from tests.support.door import Heard
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

ASKS = tuple(streamed(asking(f"Count to {number}.")) for number in (1, 2, 3))
TEXT = "One, two, three."
RETRIED = CONFIG.replace("retry = 0", "retry = 2")


def again_and_again(behaves: Behaviour) -> Behaviour:
    async def behave(peer: Peer) -> None:
        while True:
            await behaves(peer)

    return behave


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three turns of a model that is asked once, and three of one that is asked again."""
    path = tmp_path_factory.mktemp("cassettes")

    async def go() -> None:
        async with loopback(again_and_again(streams(*EVENTS))) as up:
            for name, text in (("once", CONFIG), ("again", RETRIED)):
                async with desk(path, text.replace("URL", up.url), "record") as recording:
                    for body in ASKS:
                        assert folded(await recording.ask(body, name))["content"] == TEXT

    asyncio.run(go())
    return path


async def _heard(
    folder: Path, rules: Sequence[Json], *asks: Json, name: str = "once"
) -> tuple[list[Heard], Desk]:
    faults = read_faults([*rules], "the command")
    async with desk(folder, REPLAYED, "replay", faults=faults) as playing:
        return [await playing.ask(body, name) for body in asks], playing


def heard(folder: Path, rules: Sequence[Json], *asks: Json, name: str = "once") -> list[Heard]:
    return asyncio.run(_heard(folder, rules, *asks, name=name))[0]


def outcome(heard: Heard) -> tuple[str, str]:
    """The text that was heard, and the error behind or in front of it."""
    found = folded(heard)
    error = found.get("error")
    return found.get("content", ""), error["code"] if error else ""


CUT = "upstream_truncated"
Outcome = tuple[str, str]
ONE_RULE: Mapping[str, tuple[Json, Outcome]] = {
    "cut": ({"cut": {"after_event": 2}}, ("One, two, ", CUT)),
    "cut before the first": ({"cut": {"after_event": 0}}, ("", CUT)),
    "cut by pieces": ({"cut": {"after_piece": 1}}, ("One, ", CUT)),
    "status": ({"status": 503}, ("", "overloaded")),
    "garbage": ({"garbage": True}, ("", "upstream_not_json")),
    "empty": ({"empty": True}, ("", CUT)),
    "stall": ({"stall": {"after_event": 1, "seconds": 90}}, (TEXT, "")),
    "slow": ({"slow": 1000}, (TEXT, "")),
    "refuse": ({"refuse": True}, ("", "")),
    "finish": ({"finish": "length"}, (TEXT, "")),
}


@pytest.mark.parametrize(("fault", "expected"), ONE_RULE.values(), ids=ONE_RULE)
def test_a_fault_is_heard_of_its_turn_alone(folder: Path, fault: Json, expected: Outcome) -> None:
    rule = {"turn": 2, **fault}
    found = [outcome(one) for one in heard(folder, [rule], *ASKS)]
    assert found == [(TEXT, ""), expected, (TEXT, "")]


def test_a_fault_changes_the_end_or_the_words_of_an_answer(folder: Path) -> None:
    (refused,) = heard(folder, [{"turn": 1, "refuse": True}], ASKS[0])
    assert "cannot help" in folded(refused)["refusal"]
    (cut,) = heard(folder, [{"turn": 1, "finish": "length"}], ASKS[0])
    assert folded(cut)["reason"] == "length"


def test_the_same_in_a_header_and_beside_the_cassette(folder: Path, tmp_path: Path) -> None:
    fault = {"status": 529}

    async def in_a_header() -> list[Heard]:
        async with desk(folder, REPLAYED, "replay") as playing:
            said = await playing.ask(ASKS[0], "once", fault=json.dumps(fault))
            return [said, await playing.ask(ASKS[1], "once")]

    beside = tmp_path / "once.yaml"
    beside.write_bytes((folder / "once.yaml").read_bytes())
    (tmp_path / "once.faults.yaml").write_text(json.dumps([{"turn": 1, **fault}]), "utf-8")
    expected = [("", "overloaded"), (TEXT, "")]
    assert [outcome(one) for one in asyncio.run(in_a_header())] == expected
    assert [outcome(one) for one in heard(tmp_path, [], *ASKS[:2])] == expected


@pytest.mark.parametrize("said", ["{", "[1]", '{"turn": 1, "status": 500}', '{"status": 200}'])
def test_a_fault_that_cannot_be_meant_is_refused_and_uses_no_turn(folder: Path, said: str) -> None:
    async def go() -> list[Heard]:
        async with desk(folder, REPLAYED, "replay") as playing:
            wrong = await playing.ask(ASKS[0], "once", fault=said)
            return [wrong, await playing.ask(ASKS[0], "once")]

    wrong, right = asyncio.run(go())
    assert (wrong.status, wrong.error()["code"]) == (400, "invalid_value")
    assert outcome(right) == (TEXT, "")


FIRST: Json = {"turn": 1, "first": {"status": 429, "headers": {"retry-after": "7"}}}


def test_a_first_failure_is_followed_by_the_recorded_answer(folder: Path) -> None:
    failed, fine, spent = heard(folder, [FIRST], ASKS[0], ASKS[0], ASKS[0])
    assert (failed.status, failed.headers["retry-after"]) == (429, "7")
    assert outcome(fine) == (TEXT, "")
    assert outcome(spent) == ("", "cassette_exhausted")


def test_a_first_failure_that_the_gateway_repairs_is_not_heard(folder: Path) -> None:
    fine, spent = heard(folder, [FIRST], ASKS[0], ASKS[0], name="again")
    assert outcome(fine) == (TEXT, "")
    assert outcome(spent) == ("", "cassette_exhausted")


def test_the_nth_ask_of_a_model_is_met(folder: Path) -> None:
    rule = {"match": {"model": "m"}, "nth": 2, "status": 500}
    found = [outcome(one) for one in heard(folder, [rule], *ASKS)]
    assert found == [(TEXT, ""), ("", "upstream_error"), (TEXT, "")]


def test_what_acted_is_known(folder: Path) -> None:
    rules = [{"turn": 1, "status": 500}, {"turn": 99, "status": 500}]
    _, playing = asyncio.run(_heard(folder, rules, *ASKS))
    ((_, opened),) = playing.studio.player.shelf.opened()
    assert {rule.says["turn"] for rule in opened.session.fired} == {1}


# At the door --------------------------------------------------------------------------------------


async def _raw(folder: Path, body: Json, fault: Any) -> bytes:
    """All that comes over a connection, by a server of its own."""
    async with desk(folder, REPLAYED, "replay") as playing:
        server = uvicorn.Server(
            uvicorn.Config(
                playing.door.app,
                log_level="critical",
                http=Protocol,
                interface="asgi3",
                ws="none",
                lifespan="off",
            )
        )
        with socket.create_server(("127.0.0.1", 0)) as listening:
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            data = json.dumps(body).encode()
            lines = (
                "POST /v1/chat/completions HTTP/1.1",
                "host: 127.0.0.1",
                "x-usetool-cassette: once",
                f"x-usetool-fault: {json.dumps(fault)}",
                f"content-length: {len(data)}",
            )
            writer.write("\r\n".join([*lines, "", ""]).encode() + data)
            try:
                return await asyncio.wait_for(_until_closed(reader), 5)
            finally:
                writer.close()
                server.should_exit = True
                await serving


async def _until_closed(reader: asyncio.StreamReader) -> bytes:
    heard = b""
    with suppress(ConnectionResetError):
        while piece := await reader.read(1 << 16):
            heard += piece
    return heard


@pytest.mark.parametrize("streams", [True, False])
def test_a_cut_at_the_door_ends_the_connection_without_an_end(folder: Path, streams: bool) -> None:
    body = {**ASKS[0], "stream": streams}
    body = body if streams else {name: body[name] for name in ("model", "messages")}
    raw = asyncio.run(_raw(folder, body, {"cut": {"after_event": 2, "at": "door"}}))
    assert not raw.endswith(b"0\r\n\r\n")
    assert b"[DONE]" not in raw
    assert b"error" not in raw
    assert (b"two, " in raw) is streams
    assert b"three" not in raw


def test_a_cut_at_the_door_before_the_first_byte_leaves_no_answer(folder: Path) -> None:
    for body in (ASKS[0], {**ASKS[0], "stream": False, "stream_options": None}):
        assert asyncio.run(_raw(folder, body, {"cut": {"after_event": 0, "at": "door"}})) == b""


def test_what_stands_behind_a_real_pause_waits(folder: Path) -> None:
    began = time.monotonic()
    rule = {"turn": 1, "stall": {"after_event": 1, "seconds": 0.3, "real": True}}
    (one,) = heard(folder, [rule], ASKS[0])
    assert outcome(one) == (TEXT, "")
    assert time.monotonic() - began >= 0.3
    assert len(pieces(one)) > 1
