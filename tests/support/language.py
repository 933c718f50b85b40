"""A language as small as can be: what every language gets from `adapters/wire/exchange.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from adapters.errors import Refused, Truncated
from adapters.protocol import Event, Finish, Noted, ReasoningDelta, TextDelta, Usage
from adapters.receipts import Note, OwnCode
from adapters.wire.exchange import AnswerState, Exchange
from adapters.wire.framing import Framer, Sse
from adapters.wire.json_text import load


@dataclass(slots=True)
class State(AnswerState):
    usage: Usage | None = None


def decode(frame: bytes, state: State) -> Iterator[Event]:
    """A frame is an object with one member, which says what it is."""
    (word, value), *_ = load(frame).items()
    if word == "model":
        state.model = value
    elif word == "say":
        yield TextDelta(value)
    elif word == "think":
        yield ReasoningDelta(value)
    elif word == "note":
        yield Noted((Note(value, "f", "t"),))
    elif word == "stop":
        state.ending = True
    elif word == "usage":
        state.usage = Usage(value, value)
        yield from close(state)
    elif word == "fail":
        raise Refused(value)
    elif word == "misshapen":
        yield TextDelta(value["no such member"])


def close(state: State) -> Iterator[Event]:
    if not state.ending:
        raise Truncated("cut")
    yield Finish("stop", state.usage)


def decode_answer(body: Any, state: State) -> Iterator[Event]:
    for word, value in body.items():
        yield from decode(json.dumps({word: value}).encode(), state)


NOTE = Note(OwnCode("asked"), "f", "t")


def exchange(framing: type[Framer] = Sse, *, streamed: bool = True) -> Exchange[State]:
    return Exchange(
        path="/",
        body={},
        receipt=(NOTE,),
        state=State(),
        streamed=streamed,
        framing=framing,
        decode=decode,
        close=close,
        decode_answer=decode_answer,
    )


def sse(*frames: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames)


def lines(*frames: Any) -> bytes:
    return b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)


SAY, STOP, USAGE = {"say": "a"}, {"stop": 1}, {"usage": 3}
