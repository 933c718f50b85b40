"""An answer that is kept folded says all that was said live."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from adapters.protocol import Event, Finish, Json, Opened, TextDelta, Upstream, Usage
from middleware.cassettes.asks import events_of, folded
from middleware.cassettes.cassette import CassetteTurn, Mode
from middleware.cassettes.file import turn_from_json, turn_to_json
from middleware.doors.chat.fold import Fold
from middleware.doors.chat.words import Heading
from tests.cassette.core.desk import asking, desk, streamed


def logged(token: str) -> Json:
    return {"token": token, "logprob": -0.25, "bytes": [*token.encode()], "top_logprobs": []}


EVENTS: tuple[Event, ...] = (
    Opened((), Upstream("up", "big", fingerprint="fp_1", tier="priority")),
    TextDelta("Two ", (logged("Two"), logged(" "))),
    TextDelta("words", (logged("words"),)),
    Finish("stop", Usage(5, 3)),
)


def body(events: tuple[Event, ...]) -> Json:
    fold = Fold(Heading("id", 7, "m"))
    fold.add(events)
    said: Json = orjson.loads(fold.body())
    return said


def test_a_stored_answer_is_what_was_heard() -> None:
    turn = CassetteTurn(1, {"messages": []}, folded(EVENTS))
    line = orjson.loads(orjson.dumps(turn_to_json(turn)))
    again = turn_from_json(line, "a file").answer
    assert again == turn.answer
    played = tuple(event for batch in events_of(again) for event in batch)
    assert body(played) == body(EVENTS)
    assert body(played)["choices"][0]["logprobs"]["content"][2] == logged("words")
    assert (body(played)["system_fingerprint"], body(played)["service_tier"]) == (
        "fp_1",
        "priority",
    )


LEDGER = '[ledger]\nurl = "sqlite:///usage.db"\n'


@pytest.mark.parametrize(
    ("body", "accounts", "told"),
    [
        (asking("hello"), "", True),
        (asking("hello"), LEDGER, True),
        (streamed(asking("hello")), "", False),
        (streamed(asking("hello")), LEDGER, True),
    ],
)
def test_a_price_is_told_live_and_of_a_stream_where_somebody_keeps_accounts(
    tmp_path: Path, body: Json, accounts: str, told: bool
) -> None:
    text = accounts + '[upstreams.up]\nkind = "scripted"\n[models.m]\nupstream = "up"\n'
    text += "price = { input = 1000.0, output = 1000.0 }\n"

    async def tells_it(mode: Mode | None) -> bool:
        async with desk(tmp_path, text, mode) as gateway:
            heard = await gateway.ask(body)
        return "x-usetool-cost" in heard.headers or b'"cost":' in heard.body

    assert asyncio.run(tells_it("off")) is told
    assert not asyncio.run(tells_it("record"))
    assert not asyncio.run(tells_it("replay"))
