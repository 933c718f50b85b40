"""What a gateway with cassettes says beside the doors: probes, models, status, rewind."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from adapters.protocol import Json
from middleware.cassettes.cassette import Cassette
from middleware.cassettes.file import cassette_text, write_cassette
from middleware.server.app import create
from tests.cassette.core.desk import (
    REPLAYED,
    Desk,
    asking,
    cassette,
    desk,
    folded,
    lifespan,
    parsed,
    whole_desk,
)
from tests.cassette.turns import said, turn
from tests.support.door import Door, Heard
from tests.support.door import door as plain_door

API = "/v1/x_usetool/cassettes"
ASK = asking("Which number?", "sonnet")
PROBE = asking("ping", "sonnet", max_tokens=5)
SCRIPTED = """
[upstreams.script]
kind = "scripted"
[models.sonnet]
upstream = "script"
"""
ROUTES: Mapping[str, Json] = {
    "sonnet": {"kind": "claude", "upstream": "anthropic", "name": "claude-x"},
    "both": {"pipeline": "reason-then-answer", "reasoner": "sonnet", "answerer": "sonnet"},
    "tavily": {"kind": "tavily"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    turns = tuple(turn(at, ASK, answer=said(text)) for at, text in enumerate(("one", "two"), 1))
    for name in ("default", "shop/rain"):
        write_cassette(
            tmp_path / f"{name}.yaml", cassette_text(Cassette(turns=turns, routes=ROUTES))
        )
    return tmp_path


def text_of(heard: Heard) -> str:
    return str(folded(heard)["content"]) if heard.status == 200 else str(heard.error()["code"])


# Probes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("streams", [False, True])
def test_a_probe_is_answered_in_replay_and_is_no_turn(
    folder: Path, limit: str, streams: bool
) -> None:
    body = asking("ping", "any name", stream=streams, **{limit: 5})

    async def go() -> tuple[Heard, Json, int]:
        async with desk(folder, REPLAYED, "replay") as gateway:
            heard = await gateway.ask(body)
            return heard, gateway.studio.status("default", ""), gateway.studio.asks

    heard, status, asks = asyncio.run(go())
    assert folded(heard)["content"] == "pong"
    assert "x-usetool-replay" not in heard.headers
    assert (status["played"], status["missed"], asks) == ([], [], 0)


NO_PROBES: Sequence[Json] = (
    asking("ping", "sonnet", max_tokens=6),
    asking("ping", "sonnet"),
    asking("Ping", "sonnet", max_tokens=5),
    asking("ping", "sonnet", max_tokens=5, tools=[{"type": "function", "function": {"name": "f"}}]),
    {**PROBE, "messages": [{"role": "system", "content": "x"}, *PROBE["messages"]]},
)


@pytest.mark.parametrize("body", NO_PROBES)
def test_what_is_nearly_a_probe_is_an_ask(folder: Path, body: Json) -> None:
    async def go() -> Heard:
        async with desk(folder, REPLAYED, "replay") as gateway:
            return await gateway.ask(body)

    assert text_of(asyncio.run(go())) == "cassette_miss"


def test_a_probe_is_asked_live_and_not_kept_while_recording(tmp_path: Path) -> None:
    async def go() -> list[Heard]:
        async with desk(tmp_path, SCRIPTED, "record") as gateway:
            return [await gateway.ask(PROBE), await gateway.ask(ASK)]

    probe, _ = asyncio.run(go())
    assert text_of(probe).startswith("This is a scripted")
    assert [one.body for one in cassette(tmp_path).turns] == [ASK]


# Models -------------------------------------------------------------------------------------------


def test_models_are_those_of_the_cassette_and_the_configs_where_there_is_none(
    folder: Path,
) -> None:
    async def go() -> list[list[str]]:
        async with whole_desk(folder, SCRIPTED.replace("sonnet", "own"), "replay") as gateway:
            paths = ("/v1/models", "/~shop/rain/v1/models", "/~missing/v1/models")
            heard = [await gateway.get(path) for path in paths]
            return [[one["id"] for one in answer.json()["data"]] for answer in heard]

    assert asyncio.run(go()) == [["sonnet", "both"], ["sonnet", "both"], ["own"]]


def test_one_model_is_that_of_the_cassette_too(folder: Path) -> None:
    async def go() -> list[int]:
        async with whole_desk(folder, SCRIPTED.replace("sonnet", "own"), "replay") as gateway:
            paths = ("/v1/models/sonnet", "/~shop/rain/v1/models/both", "/v1/models/nobody")
            return [(await gateway.get(path)).status for path in paths]

    assert asyncio.run(go()) == [200, 200, 404]


def test_while_recording_models_are_the_configs(folder: Path) -> None:
    async def go() -> list[str]:
        async with whole_desk(folder, SCRIPTED, "record") as gateway:
            listed = (await gateway.get("/~shop/rain/v1/models")).json()
            return [one["id"] for one in listed["data"]]

    assert asyncio.run(go()) == ["sonnet"]


# Status and rewind --------------------------------------------------------------------------------


def test_a_session_tells_what_it_had_and_begins_again(folder: Path) -> None:
    other = asking("Which letter?", "sonnet")

    async def go() -> list[Json]:
        async with whole_desk(folder, REPLAYED, "replay") as gateway:
            found = []
            for name, query in (("shop/rain@s", "?session=s"), ("shop/rain", "")):
                await gateway.ask(ASK, name)
                await gateway.ask(other, name)
                found.append((await status(gateway, "GET", f"shop/rain{query}")).json())
            await gateway.ask(ASK, "shop/rain")
            found.append((await status(gateway, "GET", "shop/rain")).json())
            found.append((await status(gateway, "POST", "shop/rain/rewind")).json())
            found.append((await status(gateway, "GET", "shop/rain?session=s")).json())
            return found

    named, own, after, rewound, untouched = asyncio.run(go())
    begun: Json = {"cassette": "shop/rain", "turns": [1, 2], "played": [1], "unused": [2]}
    for one in (named, own):
        assert one == {**begun, "missed": one["missed"]}
        (miss,) = one["missed"]
        assert (miss["code"], miss["nearest"]) == ("cassette_miss", 2)
        (difference,) = miss["differences"]
        assert difference["path"] == "messages[0].content"
    assert (after["played"], after["unused"]) == ([1, 2], [])
    assert (rewound["played"], rewound["missed"], rewound["unused"]) == ([], [], [1, 2])
    assert untouched == named


async def status(gateway: Desk, method: str, path: str, body: Any = b"") -> Heard:
    return await gateway.door.ask(body, method=method, path=f"{API}/{path}")


def test_a_rewind_brings_rules_and_faults_for_its_session_alone(folder: Path) -> None:
    rules = {"match": {"repeats": "last"}, "faults": [{"turn": 1, "status": 503}]}

    async def go() -> list[str]:
        async with whole_desk(folder, REPLAYED, "replay") as gateway:
            assert (await status(gateway, "POST", "default/rewind", rules)).status == 200
            heard = [await gateway.ask(ASK) for _ in range(3)]
            heard += [await gateway.ask(ASK, "default@other") for _ in range(3)]
            return [text_of(one) for one in heard]

    usual = ["one", "two", "cassette_exhausted"]
    assert asyncio.run(go()) == ["overloaded", "two", "two", *usual]


WRONG: Sequence[tuple[str, Any, int, str]] = (
    ("default/rewind", b"{", 400, "invalid_json"),
    ("default/rewind", {"match": {"repeats": "often"}}, 422, "cassette_unreadable"),
    ("default/rewind", {"match": ["repeats"]}, 422, "cassette_unreadable"),
    ("default/rewind", {"match": {"mask": [{"at": "messages[", "what": "date"}]}}, 422, ""),
    ("default/rewind", {"faults": [{"turn": 1}]}, 422, "cassette_unreadable"),
    ("default/rewind", {"faults": "often"}, 422, "cassette_unreadable"),
    ("missing/rewind", b"", 422, "cassette_missing"),
    ("a b/rewind", b"", 400, "cassette_name"),
)


@pytest.mark.parametrize(("path", "body", "code", "name"), WRONG)
def test_a_rewind_that_cannot_be_meant_is_refused(
    folder: Path, path: str, body: Any, code: int, name: str
) -> None:
    async def go() -> Heard:
        async with whole_desk(folder, REPLAYED, "replay") as gateway:
            return await status(gateway, "POST", path, body)

    heard = asyncio.run(go())
    assert heard.status == code
    assert heard.error()["code"] == (name or "cassette_unreadable")


def test_without_cassettes_there_is_nothing_to_tell() -> None:
    async def go() -> list[Heard]:
        gateway = plain_door()
        asked = [("GET", f"{API}/t"), ("POST", f"{API}/t/rewind"), ("GET", "/~t/v1/models")]
        asked += [("GET", "/~t/v1/models/demo")]
        return [await gateway.ask(method=method, path=path) for method, path in asked]

    for heard in asyncio.run(go()):
        assert (heard.status, heard.error()["code"]) == (400, "cassettes_off")


def test_whoever_may_not_look_at_the_last_requests_sees_no_session(folder: Path) -> None:
    async def go() -> tuple[int, int]:
        text = f'[server]\nkeys = ["secret-key"]\n{REPLAYED}'
        async with whole_desk(folder, text, "replay") as gateway:
            known = [("authorization", "Bearer secret-key")]
            path = f"{API}/default"
            seen = await gateway.door.ask(method="GET", path=path, headers=known)
            unseen = await gateway.door.ask(method="GET", path=path)
            return seen.status, unseen.status

    assert asyncio.run(go()) == (200, 401)


def test_a_server_says_what_it_could_not_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "default.yaml").write_text("usetool: {cassette: 99}\nturns: []\n", "utf-8")
    text = f'{SCRIPTED}[cassettes]\nmode = "record"\nfolder = "{tmp_path}"\n'

    async def go() -> None:
        gateway = Door(create(parsed(text), io.StringIO()), io.StringIO())
        async with lifespan(gateway.app):
            assert (await gateway.ask(ASK)).status == 200

    asyncio.run(go())
    told = capsys.readouterr().err
    assert told.count("default.yaml was not written") == 1
