"""Chunks and answers of chat completions, as the tests of them share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from adapters.compatible import Compatible
from adapters.protocol import ChatRequest, Json, RequestContext
from tests.support.fold import Answer, fold, run
from tests.support.upstreams.tape import tape

DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}


def frame(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def chunk(delta: Json | None = None, reason: str | None = None, **top: Any) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": reason}
    return frame({"id": "c", "model": "their-model", "choices": [choice], **top})


def usage(**details: Any) -> bytes:
    return frame({"id": "c", "choices": [], "usage": {**USAGE, **details}})


def piece(arguments: Any = "", **members: Any) -> bytes:
    """A chunk with one piece of a call."""
    function = {"arguments": arguments}
    if "name" in members:
        function["name"] = members.pop("name")
    return chunk({"tool_calls": [{"function": function, **members}]})


def answer_to(pieces: Sequence[bytes], streamed: bool) -> Answer:
    asked = ChatRequest(
        "m", ({"role": "user", "content": "hi"},), call=RequestContext(streamed=streamed)
    )
    return run(fold(Compatible(tape(pieces)).stream(asked)))


def heard(*frames: bytes) -> Answer:
    return answer_to(frames, streamed=True)


def whole(message: Json | None, reason: str | None = "stop", **top: Any) -> Answer:
    body = {"model": "their-model", "choices": [{"message": message, "finish_reason": reason}]}
    return answer_to([json.dumps(body | top).encode()], streamed=False)


def good(answer: Answer) -> Answer:
    assert answer.error is None
    return answer


CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


EARLY = {"prompt_tokens": 7, "completion_tokens": 1}
