"""What the tests of this door share: requests, events, and the message a stream comes to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from adapters.protocol import Event, Json, RequestContext
from middleware.doors.door import Stamp
from middleware.doors.messages import MESSAGES_DOOR
from middleware.doors.messages.parse import ParsedMessages

CALL = RequestContext(id="req_1", secret=b"secret")
STAMP = Stamp("req_1", 0, lambda: 0.0)
USER: Json = {"role": "user", "content": "Hello"}


def parsed(*messages: Json, call: RequestContext = CALL, **members: Any) -> ParsedMessages:
    body = {"model": "m", "max_tokens": 100, "messages": list(messages) or [USER], **members}
    found = MESSAGES_DOOR.parse(orjson.dumps(body), repair=False, strict=False, call=call)
    assert isinstance(found, ParsedMessages)
    return found


def frames(written: bytes) -> list[Json]:
    """The events of a stream, each under its own name."""
    found = []
    for frame in written.decode().split("\n\n")[:-1]:
        name, data = frame.split("\n")
        event = orjson.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        found.append(event)
    return found


def streamed(batches: Iterable[Sequence[Event]], asked: ParsedMessages | None = None) -> list[Json]:
    stream = (asked or parsed()).stream(STAMP)
    return frames(b"".join(stream.render(batch) for batch in batches))


def whole(events: Iterable[Event], asked: ParsedMessages | None = None) -> Json:
    message: Json = orjson.loads((asked or parsed()).fold(STAMP, events))
    return message


def message_of(events: Sequence[Json]) -> Json:
    """What a client makes of a stream, and that it is one: each block begins once, and ends."""
    kinds = [event["type"] for event in events]
    assert [kinds[0], *kinds[-2:]] == ["message_start", "message_delta", "message_stop"]
    assert [kinds.count(kind) for kind in ("message_start", "message_delta")] == [1, 1]
    message: Json = dict(events[0]["message"])
    content: list[Json] = []
    is_open = False
    for event in events[1:-2]:
        match event["type"]:
            case "content_block_start":
                assert (is_open, event["index"]) == (False, len(content))
                content.append({**event["content_block"], "said": ""})
                is_open = True
            case "content_block_delta":
                assert (is_open, event["index"]) == (True, len(content) - 1)
                _take(content[-1], event["delta"])
            case "content_block_stop":
                assert (is_open, event["index"]) == (True, len(content) - 1)
                is_open = False
            case kind:
                assert kind == "ping"
    assert not is_open
    end = events[-2]
    usage = {**message["usage"], **end["usage"]}
    return {**message, **end["delta"], "content": [*map(_complete, content)], "usage": usage}


def _take(block: Json, delta: Json) -> None:
    match delta["type"]:
        case "text_delta":
            block["said"] += delta["text"]
        case "thinking_delta":
            block["said"] += delta["thinking"]
        case "input_json_delta":
            block["said"] += delta["partial_json"]
        case "signature_delta":
            assert not block.get("signature")
            block["signature"] = delta["signature"]
        case "citations_delta":
            block.setdefault("citations", []).append(delta["citation"])
        case kind:
            raise AssertionError(kind)


def _complete(block: Json) -> Json:
    said = block.pop("said")
    match block["type"]:
        case "text":
            block["text"] = said
        case "thinking":
            assert block["signature"]
            block["thinking"] = said
        case "tool_use":
            block["input"] = _object(said)
    return block


def _object(text: str) -> Any:
    try:
        found = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
