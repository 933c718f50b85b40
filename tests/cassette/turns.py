"""Cassettes to test with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from middleware.cassettes.cassette import (
    Cassette,
    CassetteTurn,
    ExchangeFailure,
    RecordedAnswer,
    RecordedExchange,
)
from middleware.cassettes.file import cassette_text, read_cassette, write_cassette

EVENTS = b'event: message_start\ndata: {"a":1}\n\nevent: message_stop\ndata: {}\n\n'
SSE = {"content-type": "text/event-stream"}


def asked(*texts: str, **more: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"model": "sonnet", "messages": messages, **more}


def said(text: str) -> RecordedAnswer:
    return RecordedAnswer(message={"role": "assistant", "content": text}, finish_reason="stop")


def turn(number: int, body: dict[str, Any], **more: Any) -> CassetteTurn:
    return CassetteTurn(number, body, more.pop("answer", said(f"answer {number}")), **more)


def sent(body: Any) -> RecordedExchange:
    return RecordedExchange(
        "claude", "/v1/messages", orjson.dumps(body), headers=SSE, body=EVENTS, pieces=((410, 66),)
    )


FULL = CassetteTurn(
    number=1,
    body=asked("沈阳明天冷吗？", stream=True),
    answer=RecordedAnswer(
        status=502,
        message={"role": "assistant", "content": "It is\ncold"},
        finish_reason="stop",
        usage={"prompt_tokens": 4},
        error={"message": "It broke", "code": "upstream_cut"},
        body={"object": "list"},
        created=1_790_000_000,
    ),
    id="req_5f0c",
    operation="embeddings",
    headers={"content-type": "application/json"},
    exchanges=(
        RecordedExchange(
            upstream="My relay/2 ☃",
            path="/v1/messages?beta=true",
            sent=b'{"model":"c"}',
            method="PUT",
            status=529,
            headers=SSE,
            body=EVENTS[:-4],
            pieces=((410, 60), (20, 2)),
            ended="cut",
            failure=ExchangeFailure("upstream_cut", 502, "same", "It broke"),
        ),
        RecordedExchange("none", "", b"", status=0, ended="reset"),
    ),
    ended="left",
    session="s 1",
    lane="left",
    at=1200,
    route="claude-2",
    kept=True,
    redacted=True,
)
CASSETTE = Cassette(
    turns=(FULL, CassetteTurn(2, asked("Hi"), RecordedAnswer())),
    routes={"sonnet": {"kind": "compatible", "name": "claude-sonnet-4-5"}},
    facts=({"upstream": "o", "method": "POST", "path": "/api/show", "ask": {}, "answer": {}},),
    match={"mask": [{"at": "messages[role=system]", "what": "date"}]},
    diff={"ignore": ["get_weather.units"]},
    by="0.9.0",
    recorded="2026-11-18",
    server={"strict": True},
)


def without_lines(cassette: Cassette) -> Cassette:
    return replace(cassette, turns=tuple(replace(one, line=0) for one in cassette.turns))


def again(path: Path, cassette: Cassette) -> Cassette:
    """Write a cassette and read it."""
    write_cassette(path, cassette_text(cassette))
    return without_lines(read_cassette(path))
