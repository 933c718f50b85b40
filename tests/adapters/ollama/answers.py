"""Ollama's lines and the events they become, as the tests of them share."""

from __future__ import annotations

import json
from typing import Any

from adapters.errors import GatewayError
from adapters.ollama.decode import State, close, decode, decode_answer
from adapters.protocol import Event, Finish, Json, Noted, Opened, ReasoningDelta, TextDelta, Usage
from adapters.receipts import Note
from adapters.wire.exchange import Exchange, Listener
from adapters.wire.framing import Ndjson
from adapters.wire.http import Link, Transport

CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
COUNTS: Json = {"prompt_eval_count": 9, "eval_count": 3}


def line(done: Any = False, **message: Any) -> Json:
    said = {"role": "assistant", "content": "", **message}
    return {"model": "qwen3", "created_at": "2026-01-01T00:00:00Z", "message": said, "done": done}


def end(reason: str = "stop", **more: Any) -> Json:
    return {**line(done=True), "done_reason": reason, **COUNTS, **more}


def call(name: str = "weather", arguments: Any = None, **more: Any) -> Json:
    return {"function": {"index": 0, "name": name, "arguments": arguments}, **more}


def raw(*lines: Any) -> bytes:
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in lines)


def listener(state: State, streamed: bool = True) -> Listener[State]:
    ask = Exchange("", {}, (), state, streamed, Ndjson, decode, close, decode_answer)
    return Listener(Link("ollama", "", Transport()), ask, {})


def heard(
    *pieces: bytes, state: State | None = None, streamed: bool = True
) -> tuple[list[Event], GatewayError | None]:
    ear = listener(state or State(), streamed)
    events: list[Event] = []
    for piece in (*filter(None, pieces), b""):
        events += ear.feed(piece)
        if ear.over or ear.failure:
            break
    return events, ear.failure


def events_of(*lines: Any, state: State | None = None) -> list[Event]:
    """The events of a whole stream; notes are left out, adjoining pieces joined."""
    events, failure = heard(raw(*lines), state=state)
    assert failure is None
    return joined(events)


def joined(events: list[Event]) -> list[Event]:
    found: list[Event] = []
    for event in events:
        last = found[-1] if found else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            found[-1] = TextDelta(last.text + event.text, last.logprobs + event.logprobs)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            found[-1] = ReasoningDelta(last.text + event.text)
        elif not isinstance(event, Opened | Noted):
            found.append(event)
    return found


def notes_of(*lines: Any, state: State | None = None) -> list[Note]:
    events, _ = heard(raw(*lines), state=state)
    told = [event.receipt for event in events if isinstance(event, Opened | Noted)]
    return [note for receipt in told for note in receipt]


DONE = Finish("stop", Usage(9, 3), "stop")
CALLED = Finish("tool_calls", Usage(9, 3), "stop")
