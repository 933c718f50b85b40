"""Asks as strangers send them: what the door reads is recorded, and found again."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.protocol import Json
from tests.cassette.core.desk import REPLAYED, asking, cassette, desk, parsed
from tests.cassette.values import texts, values
from tests.support.door import Heard

SCRIPTED = '[upstreams.s]\nkind = "scripted"\n[models.m]\nupstream = "s"\n'


def round_trip(folder: Path, *bodies: Any) -> tuple[list[Heard], list[Heard]]:
    async def go() -> tuple[list[Heard], list[Heard]]:
        async with desk(folder, SCRIPTED, "record") as recording:
            live = await recording.asks(bodies)
        async with desk(folder, REPLAYED, "replay") as playing:
            return live, await playing.asks(bodies)

    return asyncio.run(go())


def told(heard: Sequence[Heard]) -> list[Any]:
    return [(one.status, one.json().get("choices") or one.json()["error"]) for one in heard]


HALVES = b'{"model": "m", "messages": [{"role": "user", "content": "cut \\ud83d in two"}]}'
DEEP: Json = {"type": "object"}
for _ in range(25):
    DEEP = {"type": "object", "properties": {"a": DEEP}}
ODD: Sequence[Any] = (
    HALVES,
    HALVES.replace(b'"m",', b'"m", "metadata": {"functions": "x"},'),
    asking("x", tools=[{"type": "function", "function": {"name": "f", "parameters": DEEP}}]),
    asking("x", functions=[{"name": "f", "parameters": {"type": "object"}}]),
    asking("big", seed=2**63 - 1, temperature=1e-7),
    b'{"model": "m", "messages": [{"role": "user", "content": "a"}], "model": "m"}',
    asking("parts")
    | {"messages": [{"role": "user", "content": [{"type": "text", "text": "\u2028\x85"}]}]},
    asking("nul \x00 and more \x1b[31m"),
    asking("x" * 300_000),
    asking("no such model", "nobody"),
)


@pytest.mark.parametrize("body", ODD, ids=range(len(ODD)))
def test_what_the_door_reads_is_found_again(tmp_path: Path, body: Any) -> None:
    live, again = round_trip(tmp_path, body, asking("afterwards"))
    assert told(again) == told(live)
    assert len(cassette(tmp_path).turns) == 2


@given(st.lists(texts(), min_size=1, max_size=5), values())
@settings(max_examples=12)
def test_any_text_is_found_again(contents: list[str], extra: Any) -> None:
    known = {"k": orjson.dumps(extra).decode()}
    bodies = [asking(text or "-", metadata=known) for text in contents]
    with tempfile.TemporaryDirectory() as folder:
        live, again = round_trip(Path(folder), *bodies)
    assert told(again) == told(live)


def test_what_the_door_refuses_is_no_turn(tmp_path: Path) -> None:
    async def go() -> int:
        async with desk(tmp_path, SCRIPTED, "record") as recording:
            refused = await recording.ask({"model": "m", "messages": []})
            await recording.ask(asking("fine"))
            return refused.status

    assert asyncio.run(go()) == 400
    assert len(cassette(tmp_path).turns) == 1


# What is read otherwise after a change of the config ----------------------------------------------


REPAIRS = f"[server]\nhistory_repair = true\n{SCRIPTED}"
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
NO_ID = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "done"},
    ],
}


@pytest.mark.parametrize("restarts", [True, False])
def test_what_a_changed_config_reads_is_read_again(tmp_path: Path, restarts: bool) -> None:
    async def go() -> list[int]:
        async with desk(tmp_path, SCRIPTED, "record") as gateway:
            app = gateway.door.app
            await gateway.ask(asking("one"))
            if not restarts:
                app.use(app.prepare(parsed(REPAIRS)))
                await gateway.ask(NO_ID)
                app.use(app.prepare(parsed(SCRIPTED)))
                await gateway.ask(asking("two"))
        if restarts:
            async with desk(tmp_path, REPAIRS, "auto") as gateway:
                await gateway.asks([NO_ID, asking("two")])
        async with desk(tmp_path, REPLAYED, "replay") as gateway:
            heard = await gateway.asks([asking("one"), NO_ID, asking("two")])
            return [one.status for one in heard]

    assert asyncio.run(go()) == [200, 200, 200]
