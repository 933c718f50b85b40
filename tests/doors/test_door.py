"""A door of another shape fits without a change of the server: lines, as Ollama's API has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from adapters.errors import BadRequest, Busy, GatewayError, RateLimited
from adapters.protocol import ChatRequest, Event, Finish, RequestContext, TextDelta
from adapters.receipts import Receipt
from middleware.doors import DOORS
from middleware.doors.door import Door as DoorProtocol
from middleware.doors.door import Doors, Stamp
from middleware.doors.endpoint import Endpoint
from middleware.server.signposts import CHAT
from tests.support.adapters import FakeAdapter, Step, Wait
from tests.support.door import ANSWER, END, OPENED, TEXT, USER, Door, Heard, door
from tests.support.fold import run

TINY = "heartbeat = 0.02"
BEAT = {"message": "", "done": False}


def line(value: Any) -> bytes:
    return orjson.dumps(value) + b"\n"


class Lines:
    media_type = "application/x-ndjson"

    def render(self, events: Sequence[Event]) -> bytes:
        return b"".join(map(self._line, events))

    def _line(self, event: Event) -> bytes:
        if isinstance(event, TextDelta):
            return line({"message": event.text, "done": False})
        return line({"done": True}) if isinstance(event, Finish) else b""

    def keep_for_last_frame(self, receipt: Receipt) -> None:
        pass

    def tell(self, member: str, value: Any) -> None:
        pass

    def heartbeat(self) -> bytes:
        return line(BEAT)

    def error_frame(self, error: GatewayError, request_id: str, untold: Receipt) -> bytes:
        return line({"error": error.message})


@dataclass(frozen=True)
class ParsedLines:
    request: ChatRequest
    receipt: Receipt = ()

    ready: None = None

    def stream(self, stamp: Stamp) -> Lines:
        return Lines()

    def fold(self, stamp: Stamp, events: Iterable[Event]) -> bytes:
        texts = [event.text for event in events if isinstance(event, TextDelta)]
        return line({"message": "".join(texts), "done": True})


class LinesDoor:
    name = "chat"
    endpoint = Endpoint(CHAT, "Answer in lines", "", dict, dict, {})
    roots = ("/lines",)

    def headers(self, request_id: str, error: GatewayError | None = None) -> Mapping[str, str]:
        return {"x-lines": request_id}

    def parse(
        self, body: bytes, *, repair: bool, strict: bool, call: RequestContext | None = None
    ) -> ParsedLines:
        data = orjson.loads(body)
        if "model" not in data:
            raise BadRequest("model is required")
        given = call or RequestContext()
        context = RequestContext(given.id, given.owner, streamed=data.get("stream", True))
        return ParsedLines(ChatRequest(data["model"], (USER,), call=context))

    def error_status(self, error: GatewayError) -> int:
        return 529 if isinstance(error, Busy) else error.status

    def error_body(self, error: GatewayError, request_id: str = "") -> bytes:
        return orjson.dumps({"error": error.message})


def lines_door(*steps: Step) -> Door:
    there = door(FakeAdapter(steps), TINY)
    edge: Any = there.app.chat
    other: DoorProtocol = LinesDoor()
    edge.doors = Doors([other], other)
    return there


def ask(*steps: Step, **fields: Any) -> Heard:
    async def work() -> Heard:
        return await lines_door(*steps).ask({"model": "m", **fields})

    return run(work())


def values(heard: Heard) -> list[Any]:
    return [orjson.loads(each) for each in heard.body.splitlines()]


def test_a_stream_has_the_media_type_and_the_frames_of_its_door() -> None:
    heard = ask(*ANSWER)
    assert heard.headers["content-type"] == "application/x-ndjson"
    assert values(heard) == [{"message": "hello", "done": False}, {"done": True}]


def test_a_plain_answer_is_folded_by_its_door() -> None:
    heard = ask(*ANSWER, stream=False)
    assert (heard.status, heard.json()) == (200, {"message": "hello", "done": True})


def test_an_error_has_the_status_and_the_shape_of_its_door() -> None:
    heard = ask(Busy("full"))
    assert (heard.status, heard.json()) == (529, {"error": "full"})
    assert heard.headers["x-request-id"]


def test_what_its_door_cannot_read_is_refused_in_its_words() -> None:
    async def work() -> Heard:
        return await lines_door().ask({})

    heard = run(work())
    assert (heard.status, heard.json()) == (400, {"error": "model is required"})


def test_a_stream_that_breaks_ends_with_the_error_frame_of_its_door() -> None:
    heard = ask((OPENED, TEXT), GatewayError("broken"))
    assert values(heard) == [{"message": "hello", "done": False}, {"error": "broken"}]


def test_a_silent_stream_beats_as_its_door_says() -> None:
    async def work() -> Heard:
        wait = Wait()
        heard, task = lines_door(wait, (OPENED, TEXT), (END,)).begin({"model": "m"})
        await heard.until(2)
        wait.over.set()
        await task
        return heard

    assert values(run(work()))[0] == BEAT


@pytest.mark.parametrize(
    "door",
    [one for one in DOORS.at.values() if one.name != "chat"],
    ids=lambda door: door.endpoint.path,
)
def test_a_refusal_for_too_many_requests_says_how_long_to_wait_wherever_clients_look_for_it(
    door: DoorProtocol,
) -> None:
    assert door.headers("req_1", RateLimited("slow down"))["retry-after"] == "5"
    said = RateLimited("slow down", retry_after="2")
    assert door.headers("req_1", said)["retry-after"] == "2"
    assert "retry-after" not in door.headers("req_1", GatewayError("broken", status=500))
