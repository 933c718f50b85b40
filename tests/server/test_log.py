"""The log's line about a request: what happened, and nothing that was said."""

from __future__ import annotations

import asyncio
import io
import time
from datetime import datetime
from typing import Any

import orjson

from adapters.errors import Truncated
from adapters.protocol import Finish, Opened, Upstream, Usage
from adapters.receipts import Note, OwnCode
from adapters.wire.headers import for_client, request_id
from middleware.server.edge import request_id as a_request_id
from middleware.server.log import Log
from middleware.server.visits import Visit

OPENED = Opened((Note(OwnCode("b"), "g", "u"),), Upstream("up", "model-1", "req_up"))


def visit(**fields: Any) -> Visit:
    return Visit("req_1", 10.0, **fields)


def test_a_request_that_came_to_nothing_is_a_short_line() -> None:
    assert visit(model="m", status=404).line(10.5) == {
        "id": "req_1",
        "client": "default",
        "door": "chat",
        "model": "m",
        "status": 404,
        "seconds": 0.5,
        "stream": False,
    }


def test_an_answered_request_says_who_answered_when_and_how_much() -> None:
    said = visit(model="m", status=200, streamed=True, receipt=(Note(OwnCode("a"), "f", "t"),))
    said.opened(OPENED, 10.25)
    said.finish = Finish("stop", Usage(3, 4), native="end_turn")
    assert said.line(11) == {
        "id": "req_1",
        "client": "default",
        "door": "chat",
        "model": "m",
        "status": 200,
        "seconds": 1.0,
        "stream": True,
        "first_event": 0.25,
        "upstream": "up",
        "upstream_model": "model-1",
        "upstream_request_id": "req_up",
        "finish": "stop",
        "usage": [3, 4],
        "warnings": ["a: f: t", "b: g: u"],
    }


def test_unknown_usage_is_not_zero() -> None:
    assert "usage" not in visit(finish=Finish("stop")).line(11)


def test_a_failure_and_a_client_that_left_are_told() -> None:
    line = visit(error=Truncated("it broke off"), gone=True).line(11)
    assert line["error"] == {"code": "upstream_truncated", "message": "it broke off"}
    assert line["client_gone"] is True


def test_strange_fields_make_no_long_line() -> None:
    notes = tuple(Note("parameter_dropped", "x" * 100_000, "t") for _ in range(1000))
    assert len(orjson.dumps(visit(receipt=notes).line(11))) < 20_000


def test_an_upstreams_request_id_that_is_no_text_can_be_logged() -> None:
    headers = {"request-id": b"a\xffb".decode("utf-8", "surrogateescape")}
    assert request_id(headers) == "a?b"
    assert for_client(headers)["x-upstream-request-id"] == "a?b"


class Written(io.StringIO):
    """Counts the times it is written to."""

    def __init__(self) -> None:
        super().__init__()
        self.times = 0
        self.flushed = asyncio.Event()

    def flush(self) -> None:
        self.times += 1
        self.flushed.set()


def test_lines_leave_together_each_an_object_with_its_time() -> None:
    async def scene() -> Written:
        out = Written()
        log = Log(out)
        for number in range(3):
            log.write(visit(status=200 + number, model="模型\n").line(11))
        assert out.getvalue() == ""
        log.flush()
        log.flush()
        return out

    out = asyncio.run(scene())
    lines = [orjson.loads(line) for line in out.getvalue().splitlines()]
    assert [line["status"] for line in lines] == [200, 201, 202]
    assert {line["model"] for line in lines} == {"模型\n"}
    for line in lines:
        datetime.strptime(line["time"], "%Y-%m-%dT%H:%M:%SZ")
    assert out.times == 1


def test_lines_stand_in_the_order_of_what_happened() -> None:
    async def scene() -> Written:
        out = Written()
        log = Log(out)
        log.end(visit(model="first", status=200), 11)
        log.write({"state": "away"})
        for number in range(40):
            log.end(visit(model=f"m{number}", status=200), 11)
        log.follow("warning")
        log.end(visit(model="unsaid", status=200), 11)
        log.flush()
        return out

    lines = [orjson.loads(line) for line in asyncio.run(scene()).getvalue().splitlines()]
    expected = ["first", "away", *(f"m{number}" for number in range(40))]
    assert [line.get("model") or line["state"] for line in lines] == expected


def test_lines_leave_by_themselves() -> None:
    async def scene() -> str:
        out = Written()
        log = Log(out)
        log.write(visit(status=200).line(11))
        await asyncio.wait_for(out.flushed.wait(), 5)
        return out.getvalue()

    assert asyncio.run(scene()).endswith("}\n")


def test_other_processes_write_between_lines_and_never_into_them() -> None:
    class Pieces(Written):
        def write(self, text: str) -> int:
            pieces.append(text)
            return len(text)

    async def scene() -> None:
        log = Log(Pieces())
        for number in range(100):
            log.write(visit(status=200, model="m" * number * 60).line(11))
        log.flush()

    pieces: list[str] = []
    asyncio.run(scene())
    assert 1 < len(pieces) < 100
    assert all(piece.endswith("}\n") for piece in pieces)
    assert all(len(piece) <= 4096 or piece.count("\n") == 1 for piece in pieces)
    assert "".join(pieces).count("\n") == 100


def test_ids_of_requests_are_in_the_order_of_time() -> None:
    earlier = a_request_id()
    time.sleep(0.002)
    later = [a_request_id() for _ in range(100)]
    assert all(earlier < one for one in later)
    assert len({earlier, *later}) == 101
