"""Where this version would do otherwise than the one that recorded: told, counted, or refused."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from adapters.protocol import Json
from middleware.__main__ import main
from middleware.cassettes.cassette import CassetteTurn, RecordedExchange
from middleware.cassettes.file import cassette_text, write_cassette
from middleware.cassettes.replay import Drift
from middleware.cassettes.verify import verified
from tests.cassette.core.desk import REPLAYED, asking, cassette, desk, folded
from tests.cassette.core.test_compositions import WEATHER, Upstream, round_trip
from tests.support.day_one import Seen, answering
from tests.support.door import Heard
from tests.support.text_only import BAD, OSLO
from tests.support.upstreams.loopback import loopback


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cassette of one turn that asked twice: the first call was wrong."""
    folder = tmp_path_factory.mktemp("recorded")
    round_trip(folder, Upstream(BAD, OSLO), ("chat", WEATHER))
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    """A copy to be changed."""
    shutil.copy(recorded / "default.yaml", tmp_path)
    return tmp_path


Edit = Callable[[CassetteTurn], CassetteTurn]


def edit(folder: Path, change: Edit) -> None:
    found = cassette(folder)
    (turn,) = found.turns
    write_cassette(folder / "default.yaml", cassette_text(replace(found, turns=(change(turn),))))


def sending(position: int, **change: Any) -> Edit:
    """One of its sendings had other members; None: it lacked one."""

    def changed(turn: CassetteTurn) -> CassetteTurn:
        one = turn.exchanges[position]
        sent = {**orjson.loads(one.sent), **change}
        sent = {name: value for name, value in sent.items() if value is not None}
        exchanges = [*turn.exchanges]
        exchanges[position] = replace(one, sent=orjson.dumps(sent))
        return replace(turn, exchanges=tuple(exchanges))

    return changed


def exchanges(change: Callable[[Sequence[RecordedExchange]], Sequence[RecordedExchange]]) -> Edit:
    return lambda turn: replace(turn, exchanges=tuple(change(turn.exchanges)))


def unchanged(turn: CassetteTurn) -> CassetteTurn:
    return turn


def told(turn: CassetteTurn) -> CassetteTurn:
    """The stored answer says something else, as another version would have read it."""
    assert turn.answer.message is not None
    message = {**turn.answer.message, "content": "Old words."}
    return replace(turn, answer=replace(turn.answer, message=message, finish_reason="stop"))


ELSEWHERE = RecordedExchange("elsewhere", "/v1/x", b"{}", body=b"{}")
TABLE: Sequence[tuple[str, Edit, str, Sequence[Drift]]] = (
    ("nothing", unchanged, "", ()),
    ("other", sending(0, model="x"), "encode", [Drift("encode", "upstream[0].model", "changed")]),
    ("removed", sending(1, seed=1), "encode", [Drift("encode", "upstream[1].seed", "removed")]),
    ("added", sending(1, model=None), "encode", [Drift("encode", "upstream[1].model", "added")]),
    ("asked more", exchanges(lambda all: all[:1]), "extra", [Drift("extra", "", "")]),
    ("asked other", exchanges(lambda all: [ELSEWHERE]), "extra", [Drift("extra", "", "")]),
    (
        "asked less",
        exchanges(lambda all: [*all, ELSEWHERE]),
        "unused",
        [Drift("unused", "upstream[2]", "")],
    ),
    (
        "one passed over",
        exchanges(lambda all: [replace(all[0], sent=b'{"old": 1}'), *all]),
        "unused",
        [Drift("unused", "upstream[0]", "")],
    ),
)  # fmt: skip
CASES = pytest.mark.parametrize(
    ("change", "label", "drift"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)


def ask(folder: Path, **options: Any) -> tuple[Heard, Json]:
    async def go() -> tuple[Heard, Json]:
        async with desk(folder, REPLAYED, "replay", **options) as gateway:
            heard = await gateway.ask(WEATHER)
            return heard, gateway.studio.status("default", "")

    return asyncio.run(go())


@CASES
def test_drift_is_told_and_the_answer_is_given_all_the_same(
    folder: Path, change: Edit, label: str, drift: Sequence[Drift]
) -> None:
    before, _ = ask(folder)
    edit(folder, change)
    heard, status = ask(folder)
    assert folded(heard) == folded(before)
    assert heard.headers["x-usetool-replay"] == "default turn=1 of=1" + (
        f" drift={label}" if label else ""
    )
    assert status["played"] == [1]


@CASES
def test_a_strict_wire_refuses_what_would_be_sent_otherwise(
    folder: Path, change: Edit, label: str, drift: Sequence[Drift]
) -> None:
    edit(folder, change)
    heard, _ = ask(folder, strict_wire=True)
    if label != "encode":
        assert heard.status == 200
        return
    assert (heard.status, heard.error()["code"]) == (422, "cassette_drift")
    assert drift[0][1] in heard.error()["message"]


@CASES
def test_verify_names_the_same(
    folder: Path, change: Edit, label: str, drift: Sequence[Drift]
) -> None:
    edit(folder, change)
    found = asyncio.run(verified(cassette(folder), "default.yaml"))
    assert [one.drift for one in found.drift] == [*drift]


def test_verify_names_what_is_read_otherwise_and_takes_it_if_it_may(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = cassette(folder)
    edit(folder, told)
    verify = ["cassette", "verify", "default", "--dir", str(folder)]
    assert main(verify) == 1
    said = capsys.readouterr().out
    assert "decode drift turn 1: message.content changed" in said
    assert "decode drift turn 1: finish_reason changed" in said
    assert main([*verify, "--format", "json"]) == 1
    (one,) = orjson.loads(capsys.readouterr().out)["cassettes"]
    expected = {"turn": 1, "kind": "decode", "path": "finish_reason", "change": "changed"}
    assert expected in one["drift"]
    assert main([*verify, "--accept"]) == 0
    assert main(verify) == 0
    assert cassette(folder) == before


def test_stored_answers_are_served_whatever_the_wire_says(folder: Path) -> None:
    edit(folder, told)
    heard, _ = ask(folder, serves_answers=True)
    assert folded(heard)["content"] == "Old words."
    assert heard.headers["x-usetool-replay"] == "default turn=1 of=1"


NEAR = """
[upstreams.near]
kind = "ollama"
base_url = "URL"
[models.m]
upstream = "near"
name = "small"
"""


def test_a_window_that_another_cassette_made_grow_is_no_drift(tmp_path: Path) -> None:
    facts = {"general.architecture": "small", "small.context_length": 65536}
    able = {"capabilities": ["completion"], "model_info": facts}
    said = {
        "message": {"role": "assistant", "content": "Yes."},
        "done": True,
        "done_reason": "stop",
    }

    def reply(path: str, _: str, body: Json) -> tuple[str, bytes]:
        return "200 OK", orjson.dumps(able if path == "/api/show" else {**body, **said})

    async def record() -> None:
        async with (
            loopback(answering(Seen(), reply)) as up,
            desk(tmp_path, NEAR.replace("URL", up.url), "record") as gateway,
        ):
            for text, name in (("word " * 20000, "long"), ("A word?", "short")):
                assert (await gateway.ask(asking(text), name)).status == 200

    asyncio.run(record())
    found = cassette(tmp_path, "short")
    assert orjson.loads(found.turns[0].exchanges[0].sent)["options"]["num_ctx"] == 65536
    assert asyncio.run(verified(found, "short.yaml")).drift == ()
