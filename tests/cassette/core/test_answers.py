"""An answer that is kept folded says all that was said live."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from io import BytesIO
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
    RequestContext,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Upstream,
    Usage,
)
from adapters.wire.capture import CapturedCall, CapturedFailure, CapturedTool
from middleware.cassettes.asks import events_of, folded, heard_more, told_in
from middleware.cassettes.cassette import CassetteTurn, ExchangeFailure, Mode, RecordedAnswer
from middleware.cassettes.file import turn_from_json, turn_to_json
from middleware.cassettes.names import CassetteName
from middleware.cassettes.record.adapter import RawTurn
from middleware.cassettes.record.lines import TurnRow, raw_of, read_turn, write_lines
from middleware.cassettes.record.turns import answer_of, turn_of
from middleware.cassettes.selection import Selection
from middleware.cassettes.visitor import Visitor
from middleware.doors.chat.fold import Fold
from middleware.doors.chat.words import Heading
from tests.cassette.core.desk import asking, desk, streamed


def logged(token: str) -> Json:
    return {"token": token, "logprob": -0.25, "bytes": [*token.encode()], "top_logprobs": []}


VISITOR = Visitor(
    CassetteName("name", "session"),
    Selection(lane="lane"),
    *("m", "record", b'{"messages": []}', "key"),
    RequestContext("req_1", headers={"x-one": "1"}),
    created=7,
    path="/v1/messages",
    own=b'{"own": true}',
)
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
        at_once, by_fold = (
            _read_again(RawTurn(VISITOR, (), heard, status, error))
            for heard in (events, _one_by_one(events))
        )
        assert at_once == by_fold
        assert orjson.dumps(at_once) == orjson.dumps(by_fold)
        assert (at_once.status, at_once.error, at_once.created) == (status, error, 7)


def test_what_parts_hold_in_order_only_grows_at_its_end() -> None:
    """A part that a crash left may be read by the next version."""
    tool = ("name", "arguments", "content", "failed", "sources", "cut", "seconds", "pieces")
    assert CapturedTool._fields == (*tool, "order")
    failure = ("code", "status", "again", "message", "retry_after")
    assert CapturedFailure._fields == failure
    usage = ("prompt", "completion", "cached", "cache_write", "reasoning", "extra")
    assert tuple(field.name for field in fields(Usage))[: len(usage)] == usage


def test_a_part_of_before_that_has_names_is_read() -> None:
    call = {
        "upstream": "up",
        "url": "http://up/v1",
        "status": 502,
        "began": 5.5,
        "headers": {"retry-after": "7"},
        "chunks": [[5.75, [2]]],
        "failure": {
            "code": "upstream_cut",
            "status": 502,
            "again": "same",
            "message": "It broke.",
            "retry_after": "7",
        },
    }
    line = {
        "id": "req_1",
        "at": 33,
        "model": "m",
        "session": "",
        "lane": "",
        "left": False,
        "operation": "chat",
        "created": 7,
        "path": "",
        "headers": {},
        "calls": [call],
        "answer": {"status": 502},
        "bodies": [2, 0, 2, 2],
        "tools": [{"name": "look", "arguments": "{}", "content": "Nothing.", "failed": True}],
    }
    turn = turn_of(raw_of(read_turn(line, BytesIO(b"{}\n\n{}\nhe\n"))))
    (exchange,) = turn.exchanges
    assert exchange.failure == ExchangeFailure("upstream_cut", 502, "same", "It broke.")
    assert (exchange.body, exchange.headers) == (b"he", {"retry-after": "7"})
    assert turn.tools == (CapturedTool("look", "{}", "Nothing.", True),)
    assert turn.answer == RecordedAnswer(502)


def _read_again(raw: RawTurn) -> RecordedAnswer:
    """What a part says of an answer."""
    return answer_of(raw_of(_row(raw, 0)))


def _row(raw: RawTurn, at: int) -> TurnRow:
    """What a part says of a turn."""
    pieces: list[bytes] = [b"what stands before\n"]
    size = write_lines(raw, at, pieces)
    lines = b"".join(pieces[1:])
    assert (size, lines[-1:]) == (len(lines), b"\n")
    head, _, bodies = lines.partition(b"\n")
    return read_turn(orjson.loads(head), BytesIO(bodies))


def _one_by_one(events: tuple[Event, ...]) -> Fold:
    first, *others = events
    fold = heard_more(None, (first,))
    for event in others:
        assert heard_more(fold, (event,)) is fold
    return fold


def test_what_came_at_once_is_folded_if_more_comes() -> None:
    fold = heard_more(EVENTS[:2], EVENTS[2:])
    assert told_in(fold, 7, 200, None) == told_in(_one_by_one(EVENTS), 7, 200, None)


def test_a_line_says_all_of_a_turn() -> None:
    call = CapturedCall("up", "http://up/v1", {}, (), None, b'{"sent": 1}', 5.5)
    call.status, call.answer_headers, call.pieces = 502, {"retry-after": "7"}, [b"hea", b"rd"]
    call.chunks = [(5.75, [3]), (5.875, [1, 1])]
    call.failure = CapturedFailure("upstream_cut", 502, "same", "It broke.", "7")
    other = CapturedCall("other", "http://other", {}, (), None, b"", 6.0)
    tool = CapturedTool("look", "{}", "Nothing.", True, [{"url": "u"}], 9, 0.5, ("Noth", "ing."), 2)
    raw = RawTurn(VISITOR, [call, other], None, 502, {"message": "cut"}, True, None, [tool])
    row = _row(raw, 33)
    again = raw_of(row)
    assert (row.at, again.left, again.visitor.call.headers) == (33, True, {"x-one": "1"})
    assert [one._replace(pieces=(*one.pieces,)) for one in again.tools] == [tool]
    told = turn_of(raw)
    assert turn_of(again._replace(tools=[tool])) == told
    assert told.exchanges[0].pieces != ()
    assert told.own == {"own": True}


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
