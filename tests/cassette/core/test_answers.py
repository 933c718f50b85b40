"""An answer that is kept folded says all that was said live."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from adapters.protocol import (
    Aside,
    Event,
    Finish,
    Json,
    Noted,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
    Usage,
)
from middleware.cassettes.asks import events_of, folded, heard_more, told_in
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


TEXTS = (TextDelta("Two words"), TextDelta(""), TextDelta("Two", (logged("Two"), logged("!"))))
FINISHES: tuple[Finish, ...] = (
    Finish("stop"),
    Finish("length", Usage(5, 3, 2, 0, 1, {"odd": {"a": 1}}), "max", {"role": "assistant"}, "."),
    Finish("content_filter", Usage(0, 0)),
)
OTHERS: tuple[tuple[Event, ...], ...] = (
    (RefusalDelta("No."),),
    (ReasoningDelta("Hm."), TextDelta("Two words")),
    (TextDelta("Two "), TextDelta("words")),
    (ToolCallStart(0, "call_1", "look"), ToolCallDelta(0, "{}")),
    (TextDelta("Two words"), Aside("annotations", [{"a": 1}])),
    (Noted(()), TextDelta("Two words")),
    (),
)


@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("said", [*((text,) for text in TEXTS), *OTHERS])
@pytest.mark.parametrize("opened", [(), EVENTS[:1], (Opened((), Upstream("up")),)])
def test_what_came_at_once_is_told_as_if_it_were_folded(
    opened: tuple[Event, ...], said: tuple[Event, ...], finish: Finish
) -> None:
    events = (*opened, *said, finish)
    for status, error in ((200, None), (502, {"message": "cut"})):
        told = told_in(events, 7, status, error)
        assert told == told_in(_one_by_one(events), 7, status, error)
        assert orjson.dumps(told) == orjson.dumps(told_in(_one_by_one(events), 7, status, error))


def _one_by_one(events: tuple[Event, ...]) -> Fold:
    first, *others = events
    fold = heard_more(None, (first,))
    for event in others:
        assert heard_more(fold, (event,)) is fold
    return fold


def test_what_came_at_once_is_folded_if_more_comes() -> None:
    fold = heard_more(EVENTS[:2], EVENTS[2:])
    assert told_in(fold, 7, 200, None) == told_in(_one_by_one(EVENTS), 7, 200, None)


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
