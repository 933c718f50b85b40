"""Answers written as chunks and as a whole, as the tests of them share."""

from __future__ import annotations

import orjson

from adapters.protocol import (
    Event,
    Json,
    Opened,
    Upstream,
)
from middleware.doors.chat.chunks import Chunks
from middleware.doors.chat.fold import Fold
from middleware.doors.chat.words import Heading

OPENED = Opened((), Upstream("up"))
LOGPROB = {"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}


def heading(legacy: bool = False, usage_chunk: bool = False) -> Heading:
    return Heading("chatcmpl-1", 1763456400, "客户", legacy, usage_chunk)


def read(frames: bytes) -> list[Json]:
    """The chunks of a complete stream, without its `[DONE]`."""
    *data, done, rest = frames.split(b"\n\n")
    assert (done, rest) == (b"data: [DONE]", b"")
    return [chunk_of(frame) for frame in data]


def chunk_of(frame: bytes) -> Json:
    assert frame.startswith(b"data: {")
    assert b"\n" not in frame
    chunk: Json = orjson.loads(frame[6:])
    return chunk


def written(*events: Event, legacy: bool = False, usage_chunk: bool = False) -> list[Json]:
    return read(Chunks(heading(legacy, usage_chunk)).render([OPENED, *events]))


def whole(*events: Event, legacy: bool = False) -> Json:
    fold = Fold(heading(legacy))
    fold.add([OPENED, *events])
    said: Json = orjson.loads(fold.body())
    return said
