"""What is recorded of each kind of upstream plays without it: libraries, models, searches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from adapters.leaf import Leaf
from adapters.local import Local
from adapters.local.engine import Engine
from adapters.local.files import Model
from adapters.longtail import Longtail
from adapters.protocol import Json
from adapters.wire.http import Link, Transport
from middleware.cassettes.record.merge import USUAL, Policy
from tests.adapters.local.test_local import ANSWER, Script
from tests.adapters.test_longtail import Failure, Fake, Response, Stream, chunk, whole
from tests.adapters.test_longtail import Model as Answered
from tests.cassette.core.desk import REPLAYED, asking, cassette, desk, folded, pieces, streamed
from tests.support.cases import WEATHER
from tests.support.door import Heard

SCRIPTED = """
[upstreams.script]
kind = "scripted"
[models.m]
upstream = "script"
"""
LIBRARIES = """
[upstreams.embedded]
kind = "local"
options = {path = "/models/small.gguf"}
[models.small]
upstream = "embedded"
name = "small"
[upstreams.tail]
kind = "longtail"
api_key = "tail-key-1234"
[models.far]
upstream = "tail"
name = "acme/far"
"""


def told(heard: Heard) -> tuple[int, list[bytes], str]:
    return heard.status, pieces(heard), heard.headers.get("x-upstream-model", "")


async def _replayed(folder: Path, bodies: Sequence[Json]) -> list[Heard]:
    async with desk(folder, REPLAYED, "replay") as gateway:
        return await gateway.asks(bodies)


# A scripted model has no bytes --------------------------------------------------------------------


def test_what_has_no_exchange_is_played_from_its_stored_answer(tmp_path: Path) -> None:
    bodies = [
        asking("hello"),
        asking("How cold is it in Oslo?", tools=[WEATHER]),
        streamed(asking("Say more.")),
        asking("think", reasoning_effort="low"),
    ]

    async def live() -> list[Heard]:
        async with desk(tmp_path, SCRIPTED, "record") as gateway:
            return await gateway.asks(bodies)

    heard = asyncio.run(live())
    assert all(not turn.exchanges for turn in cassette(tmp_path).turns)
    again = asyncio.run(_replayed(tmp_path, bodies))
    assert [folded(one) for one in again] == [folded(one) for one in heard]
    # A stored answer has no fingerprint.
    assert {again[0].json()[name] == heard[0].json()[name] for name in ("id", "created")} == {True}
    crossed = asyncio.run(_replayed(tmp_path, [streamed(bodies[1])]))
    assert folded(crossed[0]) == folded(heard[1])


# Libraries are not loaded -----------------------------------------------------------------------


def _local(*chunks: bytes) -> Local:
    script = Script(*(chunks or ANSWER))
    return Local(
        Link("embedded", "", Transport()), Model("/home/me/small.gguf"), Engine(script.handle)
    )


def _far(answer: Any) -> Longtail:
    return Fake(answer).leaf(Link("tail", "", Transport()))


class LibraryAsk(NamedTuple):
    model: str
    leaf: Callable[[], Leaf]
    """What answers in the library's place."""
    body: Json


async def recorded_of_a_library(folder: Path, ask: LibraryAsk, policy: Policy = USUAL) -> Heard:
    async with desk(folder, SCRIPTED, "record", policy=policy) as gateway:
        gateway.put({ask.model: ask.leaf()}, LIBRARIES)
        return await gateway.ask(ask.body)


SLOWLY = Failure(429, "Slowly!", Response({"retry-after": "9"}))
CHUNKS = (
    chunk({"role": "assistant", "content": "To"}),
    chunk({"content": "lo"}),
    chunk({}, "stop"),
)
NEAR, FAR = asking("hello", "small"), asking("hello", "far")
LIBRARY_ASKS: Sequence[LibraryAsk] = (
    LibraryAsk("small", _local, NEAR),
    LibraryAsk("small", _local, streamed(NEAR)),
    LibraryAsk("far", lambda: _far(Answered(whole("Tolo"))), FAR),
    LibraryAsk("far", lambda: _far(Stream(CHUNKS)), streamed(FAR)),
)


@pytest.mark.parametrize("ask", LIBRARY_ASKS, ids=["near", "near-stream", "far", "far-stream"])
def test_what_a_library_said_is_read_without_it(tmp_path: Path, ask: LibraryAsk) -> None:
    heard = asyncio.run(recorded_of_a_library(tmp_path, ask))
    assert heard.status == 200
    (again,) = asyncio.run(_replayed(tmp_path, [ask.body]))
    assert told(again) == told(heard)
    assert again.headers["x-usetool-replay"] == "default turn=1 of=1"
    (turn,) = cassette(tmp_path).turns
    assert len(turn.exchanges) == 1
    assert "/home/me" not in (tmp_path / "default.yaml").read_text("utf-8")


BROKEN: Sequence[LibraryAsk] = (
    LibraryAsk("far", lambda: _far(SLOWLY), FAR),
    LibraryAsk("far", lambda: _far(SLOWLY), streamed(FAR)),
    LibraryAsk("far", lambda: _far(Stream([CHUNKS[0], CHUNKS[1], SLOWLY])), streamed(FAR)),
    LibraryAsk("small", lambda: _local(*ANSWER[:2]), streamed(NEAR)),
)


@pytest.mark.parametrize("ask", BROKEN, ids=["at once", "at once, stream", "later", "cut"])
def test_what_broke_a_library_is_heard_again(tmp_path: Path, ask: LibraryAsk) -> None:
    heard = asyncio.run(recorded_of_a_library(tmp_path, ask, Policy(keep_errors=True)))
    (again,) = asyncio.run(_replayed(tmp_path, [ask.body]))
    assert "error" in folded(again)
    assert (again.status, pieces(again)) == (heard.status, pieces(heard))
    assert again.headers.get("retry-after") == heard.headers.get("retry-after")
    assert again.headers["x-usetool-replay"] == "default turn=1 of=1"
