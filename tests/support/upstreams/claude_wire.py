"""Claude's wire for tests: answers built event by event, requests as they would go up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from adapters.claude import KIND, connect
from adapters.protocol import TURN, Adapter, ChatRequest, Json, RequestContext
from adapters.receipts import Note
from adapters.shared.history import settle
from adapters.wire.http import Link, Transport
from tests.support.fold import Answer, fold, run
from tests.support.upstreams.tape import tape

MANUAL, ADAPTIVE, ALWAYS = "claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-5-5"
UNASKED, BETWEEN, PLAIN = "claude-opus-5", "claude-sonnet-5-5", "claude-3-haiku-20240307"
HELLO: Json = {"role": "user", "content": "hello"}
WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}

# Answers ----------------------------------------------------------------------------------------


def sse(*events: Json) -> bytes:
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (event["type"].encode(), orjson.dumps(event))
        for event in events
    )


def begin(**usage: Any) -> Json:
    usage = {"input_tokens": 10, "output_tokens": 1} | usage
    message = {"id": "msg_1", "type": "message", "model": "claude-x", "content": [], "usage": usage}
    return {"type": "message_start", "message": message}


def block(index: int, start: Json, *deltas: Json) -> Iterator[Json]:
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def text(index: int, *pieces: str) -> Iterator[Json]:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return block(index, {"type": "text", "text": ""}, *deltas)


def thought(index: int, *pieces: str, signature: str = "sig") -> Iterator[Json]:
    deltas: list[Json] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
    deltas.append({"type": "signature_delta", "signature": signature})
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)


def call(index: int, identity: str, name: str, *pieces: str) -> Iterator[Json]:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    start = {"type": "tool_use", "id": identity, "name": name, "input": {}}
    return block(index, start, *deltas)


def end(reason: str | None = "end_turn", details: Json | None = None, **usage: Any) -> list[Json]:
    delta = {"stop_reason": reason, "stop_sequence": None, "stop_details": details}
    usage = {"output_tokens": 5} | usage
    return [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]


def message(*blocks: Json, reason: str = "end_turn", **usage: Any) -> bytes:
    """A plain answer."""
    usage = {"input_tokens": 10, "output_tokens": 5} | usage
    said = {"type": "message", "model": "claude-x", "content": blocks, "stop_reason": reason}
    return orjson.dumps({**said, "usage": usage})


def hear(
    *pieces: bytes, streamed: bool = True, model: str = MANUAL, tools: Sequence[Json] = (),
    **params: Any,
) -> Answer:  # fmt: skip
    """What an adapter makes of an answer that comes in these pieces."""
    adapter = connect(KIND.settings(tape(pieces)))
    call = RequestContext(id="req_1", streamed=streamed)
    asked = ChatRequest(model, (HELLO,), tuple(tools), params=params, call=call)
    return run(fold(adapter.stream(asked)))


# Requests ---------------------------------------------------------------------------------------


def claude(version: str | None = None, **options: Any) -> Adapter:
    """An adapter that is only asked for its plans; abilities are given as `able_…`."""
    abilities = {k.removeprefix("able_"): v for k, v in options.items() if k.startswith("able_")}
    rest = {name: value for name, value in options.items() if not name.startswith("able_")}
    link = Link("claude", "https://claude.example", Transport())
    return connect(KIND.settings(link, version, abilities, rest))


def request(
    *messages: Json, model: str = MANUAL, tools: Sequence[Json] = (), choice: Any = None,
    extra: Mapping[str, Any] | None = None, **params: Any,
) -> ChatRequest:  # fmt: skip
    settled, _ = settle(messages or (HELLO,))
    # Recall puts an upstream's own turn back below the door, which lets none through.
    own = [message.get(TURN) for message in messages if message["role"] == "assistant"]
    recalled = [
        {**message, TURN: turn}
        if message["role"] == "assistant" and (turn := own.pop(0))
        else message
        for message in settled
    ]
    return ChatRequest(model, tuple(recalled), tuple(tools), choice, params, extra or {})


def sent(asked: ChatRequest, adapter: Adapter | None = None) -> tuple[Json, list[str]]:
    """The body as it goes over the wire, and the codes of the receipt."""
    body, notes = sent_with_notes(asked, adapter)
    return body, [note.code for note in notes]


def sent_with_notes(
    asked: ChatRequest, adapter: Adapter | None = None
) -> tuple[Json, tuple[Note, ...]]:
    (planned,) = (adapter or claude()).plan(asked)
    body: Json = orjson.loads(orjson.dumps(planned.body))
    return body, planned.receipt


def turns(*messages: Json, **asked: Any) -> list[Json]:
    found: list[Json] = sent(request(*messages, **asked))[0]["messages"]
    return found
