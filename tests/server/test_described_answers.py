"""Answers have no member that `/openapi.json` does not describe, and every member it requires."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import jsonschema
import orjson
import pytest

from adapters.errors import Truncated
from adapters.protocol import (
    Event,
    Finish,
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
from adapters.receipts import Note
from tests.server.test_models import relay
from tests.server.upstreams import RELAY
from tests.support.adapters import FakeAdapter
from tests.support.day_one import Json, Seen, answering, running
from tests.support.door import Heard, door
from tests.support.upstreams.loopback import loopback

NOTE = Note("usage_estimated", "usage", "counted here")
OPENED = Opened((), Upstream("up", "claude-x", "", {}, "fp_1", "default"))
PART = Usage(3, 4)
USAGE = Usage(3, 4, cached=1, cache_write=1, reasoning=2, parts=(("answerer", PART),))
CALL = (ToolCallStart(0, "call_1", "f"), ToolCallDelta(0, "{}"))
OWN = (ToolCallStart(0, "call_1", "f", "custom"), ToolCallDelta(0, "text"))
ANSWERS: tuple[tuple[Event, ...], ...] = (
    (OPENED, ReasoningDelta("hm"), TextDelta("a"), TextDelta("b"), Finish("stop", USAGE)),
    (OPENED, *CALL, Noted((NOTE,)), Finish("tool_calls", PART)),
    (OPENED, *OWN, Finish("tool_calls", PART)),
    (OPENED, RefusalDelta("no"), Finish("content_filter", None)),
)
FUNCTION: Json = {"name": "f", "parameters": {"type": "object"}}


def document() -> Json:
    async def ask() -> Heard:
        return await door().ask(method="GET", path="/openapi.json")

    found: Json = asyncio.run(ask()).json()
    return found


def complain(document: Json, shape: str, value: Any) -> list[str]:
    """What is wrong with a value, members that are not described included."""
    schemas = {
        name: {**schema, "additionalProperties": False} if "properties" in schema else schema
        for name, schema in document["components"]["schemas"].items()
    }
    whole = {"components": {"schemas": schemas}, "$ref": f"#/components/schemas/{shape}"}
    return [error.message for error in jsonschema.Draft202012Validator(whole).iter_errors(value)]


def data(frames: Sequence[bytes]) -> Iterator[Any]:
    for frame in frames:
        if frame != b"data: [DONE]":
            yield orjson.loads(frame.removeprefix(b"data: "))


@pytest.mark.parametrize(
    ("answer", "more"),
    [*[(answer, {}) for answer in ANSWERS], (ANSWERS[1], {"functions": [FUNCTION]})],
)
def test_an_answer_is_described_whole_and_streamed(answer: tuple[Event, ...], more: Json) -> None:
    async def script() -> tuple[Heard, Heard]:
        there = door(FakeAdapter([answer], [answer]))
        options: Json = {"stream": True, "stream_options": {"include_usage": True}}
        return await there.chat(**more), await there.chat(**more, **options)

    whole, streamed = asyncio.run(script())
    known = document()
    assert complain(known, "Completion", whole.json()) == []
    chunks = list(data(streamed.frames()))
    assert len(chunks) > 2
    assert [wrong for chunk in chunks for wrong in complain(known, "Chunk", chunk)] == []


def test_the_error_of_a_stream_is_described() -> None:
    async def script() -> Heard:
        steps = ((OPENED, TextDelta("a")), Noted((NOTE,)), Truncated("It stopped."))
        return await door(FakeAdapter(steps)).chat(stream=True)

    *_, error = data(asyncio.run(script()).frames())
    assert error["x_usetool"]["warnings"]
    assert complain(document(), "ErrorBody", error) == []


def test_models_and_kept_requests_are_described() -> None:
    async def script() -> list[tuple[str, Any]]:
        async with (
            loopback(answering(Seen(), relay)) as up,
            running(RELAY.replace("URL", up.url)) as gateway,
        ):
            await gateway.chat({"model": "relay/gpt-4o", "messages": []})
            await gateway.chat(
                {"model": "relay/gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
            )
            _, kept = await gateway.get("/v1/x_usetool/last")
            return [
                ("ModelObjects", (await gateway.get("/v1/models?all=true"))[1]),
                ("ModelObject", (await gateway.get("/v1/models/relay/org/tiny"))[1]),
                ("KeptRequests", kept),
                *[
                    ("WholeRequest", (await gateway.get(f"/v1/x_usetool/last/{one['id']}"))[1])
                    for one in kept["data"]
                ],
            ]

    known = document()
    answers = asyncio.run(script())
    assert len(answers) == 5
    for shape, answer in answers:
        assert complain(known, shape, answer) == []


def test_a_member_that_is_not_described_is_seen() -> None:
    known = document()
    assert complain(known, "Health", {"status": "ok"}) == []
    assert complain(known, "Health", {"status": "ok", "more": 1})
    assert complain(known, "Health", {})
