"""vcrpy plays and records our cassettes; what others read is written as they read it."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp
import httpx
import pytest
import vcr
from hypothesis import given
from hypothesis import strategies as st
from vcr.persisters.filesystem import FilesystemPersister
from vcr.request import Request
from vcr.serialize import deserialize as vcrpy_reads
from vcr.serializers import yamlserializer

import middleware.cassettes.vcr as ours
from adapters.protocol import Json
from middleware.cassettes.bridges import slim, to_har, to_vcrpy
from middleware.cassettes.cassette import (
    Cassette,
    CassetteTurn,
    RecordedAnswer,
    RecordedExchange,
)
from middleware.cassettes.errors import UnreadableCassette
from middleware.cassettes.file import cassette_text, parse_cassette

URL = "http://up-relay.test/chat/completions"
JSON = {"content-type": "application/json"}
SSE = {"content-type": "text/event-stream"}
ASKED: Json = {"model": "m", "messages": [{"role": "user", "content": "沈阳?"}]}
ANSWERED: Json = {
    "model": "m-1",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "冷"}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
STREAM = (
    'data: {"choices":[{"index":0,"delta":{"content":"冷"}}]}\n\n'
    'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    "data: [DONE]\n\n"
).encode()


def exchange(body: bytes, headers: Json, **changes: Any) -> RecordedExchange:
    usual = RecordedExchange(
        upstream="up-relay",
        path="/chat/completions",
        sent=json.dumps(ASKED).encode(),
        headers=headers,
        body=body,
        pieces=((400, len(body) - 2), (30, 1), (20, 1)),
    )
    return replace(usual, **changes)


def turn(number: int, *exchanges: RecordedExchange, at: int = 0) -> CassetteTurn:
    told = RecordedAnswer(message={"role": "assistant", "content": "冷"}, finish_reason="stop")
    return CassetteTurn(number, ASKED, told, exchanges=exchanges, at=at)


CASSETTE = Cassette(
    turns=(
        turn(1, exchange(json.dumps(ANSWERED).encode(), JSON)),
        turn(
            2,
            exchange(b'{"error": "busy"}', {**JSON, "retry-after": "1"}, status=429),
            exchange(STREAM, SSE),
            at=5_000,
        ),
        turn(3, exchange(b"", {}, status=0, ended="reset", pieces=())),
    ),
    routes={"m": {"kind": "compatible", "name": "m-1"}},
    facts=({"upstream": "up-relay"},),
    by="9.9",
    recorded="2026-11-18",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "shop.yaml"
    path.write_bytes(cassette_text(CASSETTE).text)
    return path


def recorder(serializer: str = "usetool", **options: Any) -> vcr.VCR:
    found = vcr.VCR(serializer=serializer, record_mode="none", **options)
    found.register_serializer("usetool", ours)
    return found


def test_vcrpy_alone_refuses_our_file(path: Path) -> None:
    with pytest.raises(KeyError, match="interactions"), vcr.use_cassette(str(path)):
        pass


def test_vcrpy_plays_our_exchanges_to_aiohttp(path: Path) -> None:
    async def ask() -> list[tuple[int, bytes]]:
        heard = []
        async with aiohttp.ClientSession() as session:
            for _ in range(3):
                async with session.post(URL, data=json.dumps(ASKED).encode()) as reply:
                    heard.append((reply.status, await reply.read()))
        return heard

    with recorder(match_on=("method", "uri", "body")).use_cassette(str(path)) as played:
        heard = asyncio.run(ask())
    assert played.all_played
    assert heard == [
        (found.status, found.body) for one in CASSETTE.turns[:2] for found in one.exchanges
    ]


def test_vcrpy_plays_our_exchanges_to_httpx(path: Path) -> None:
    with recorder().use_cassette(str(path)), httpx.Client() as client:
        replies = [client.post(URL, json=ASKED) for _ in range(3)]
    assert replies[0].json() == ANSWERED
    assert (replies[1].reason_phrase, replies[1].headers["retry-after"]) == (
        "Too Many Requests",
        "1",
    )
    assert (replies[2].headers["content-type"], replies[2].content) == ("text/event-stream", STREAM)


def test_what_has_no_exchanges_is_not_played_as_nothing(tmp_path: Path) -> None:
    path = tmp_path / "slim.yaml"
    path.write_bytes(cassette_text(slim(CASSETTE)).text)
    with (
        pytest.raises(UnreadableCassette, match="no exchanges"),
        recorder().use_cassette(str(path)),
    ):
        pass


def read(text: str, serializer: ModuleType) -> list[tuple[Request, Json]]:
    requests, responses = vcrpy_reads(text, serializer)
    return list(zip(requests, responses, strict=True))


# Exports ---------------------------------------------------------------------------------------


def test_an_export_is_played_by_vcrpy_alone(tmp_path: Path) -> None:
    path = tmp_path / "export.yaml"
    path.write_text(to_vcrpy(CASSETTE), "utf-8")
    requests, responses = FilesystemPersister.load_cassette(path, yamlserializer)
    assert [request.uri for request in requests] == [URL] * 3
    with recorder("yaml").use_cassette(str(path)), httpx.Client() as client:
        assert [client.post(URL, json=ASKED).status_code for _ in responses] == [200, 429, 200]


@given(st.binary(), st.text().map(str.encode))
def test_an_export_keeps_every_byte(body: bytes, sent: bytes) -> None:
    cassette = Cassette(turns=(turn(1, exchange(body, JSON, sent=sent)),))
    ((request, response),) = read(to_vcrpy(cassette), yamlserializer)
    assert response["body"]["string"] == body
    assert (request.body or b"") == sent


# What HAR 1.2 wants of each object; `content` and `postData` are looked at below.
ENTRY = {"startedDateTime", "time", "request", "response", "cache", "timings"}
REQUEST = {"method", "url", "httpVersion", "cookies", "headers", "queryString"}
RESPONSE = {"status", "statusText", "httpVersion", "cookies", "headers", "content", "redirectURL"}
SIZES = {"headersSize", "bodySize"}


def test_an_archive_has_what_har_wants() -> None:
    log = json.loads(to_har(CASSETTE))["log"]
    assert (log["version"], log["creator"]) == ("1.2", {"name": "usetool", "version": "9.9"})
    assert len(log["entries"]) == 3
    for entry in log["entries"]:
        assert entry.keys() >= ENTRY
        assert entry["request"].keys() >= REQUEST | SIZES
        assert entry["response"].keys() >= RESPONSE | SIZES
        assert entry["response"]["content"].keys() >= {"size", "mimeType"}
        assert entry["request"]["postData"].keys() == {"mimeType", "text"}
        assert entry["timings"] == {"send": 0, "wait": 400, "receive": 50}
        assert entry["time"] == sum(entry["timings"].values())
    assert [entry["startedDateTime"] for entry in log["entries"]] == [
        "2026-11-18T00:00:00.000+00:00",
        "2026-11-18T00:00:05.000+00:00",
        "2026-11-18T00:00:05.000+00:00",
    ]
    assert log["entries"][2]["response"]["content"]["text"] == STREAM.decode()


def test_an_archive_has_queries_and_bytes() -> None:
    asked = exchange(b"\xff\xfe\x00", {}, path="/a?x=1&x=2&y=", sent=b"", method="GET")
    (entry,) = json.loads(to_har(Cassette(turns=(turn(1, asked),))))["log"]["entries"]
    assert "postData" not in entry["request"]
    assert [(one["name"], one["value"]) for one in entry["request"]["queryString"]] == [
        ("x", "1"),
        ("x", "2"),
        ("y", ""),
    ]
    content = entry["response"]["content"]
    assert (content["encoding"], base64.b64decode(content["text"])) == ("base64", b"\xff\xfe\x00")


def test_a_slim_cassette_has_asks_answers_and_routes_alone() -> None:
    thin = slim(CASSETTE)
    assert [one.answer for one in thin.turns] == [one.answer for one in CASSETTE.turns]
    assert not any(one.exchanges for one in thin.turns)
    assert (thin.facts, thin.routes, thin.recorded) == ((), CASSETTE.routes, CASSETTE.recorded)


# Recorded by vcrpy --------------------------------------------------------------------------------

FOREIGN = "https://api.example.com/v1/chat/completions"


def interaction(uri: str, sent: str, answered: str) -> Json:
    return {
        "request": {"method": "POST", "uri": uri, "body": sent, "headers": {}},
        "response": {
            "status": {"code": 200, "message": "OK"},
            "headers": {"content-type": ["application/json"], "set-cookie": ["secret"]},
            "body": {"string": answered},
        },
    }


def test_what_vcrpy_recorded_is_a_cassette_that_it_plays_again() -> None:
    chat = interaction(FOREIGN, json.dumps(ASKED), json.dumps(ANSWERED))
    other = interaction("https://api.example.com/weather?city=x", "", "cold")
    text = ours.serialize({"interactions": [chat, other]})
    again = ours.deserialize(text)["interactions"]
    assert [one["request"]["uri"] for one in again] == [FOREIGN, other["request"]["uri"]]
    assert [one["response"]["body"]["string"] for one in again] == [
        json.dumps(ANSWERED),
        "cold",
    ]
    assert "set-cookie" not in text


def test_a_chat_that_vcrpy_recorded_has_its_ask_and_answer() -> None:
    text = ours.serialize(
        {"interactions": [interaction(FOREIGN, json.dumps(ASKED), json.dumps(ANSWERED))]}
    )
    (turn,) = parse_cassette(text.encode(), Path("t.yaml")).turns
    assert turn.body == ASKED
    assert turn.answer.message is not None
    assert turn.answer.message["content"] == ANSWERED["choices"][0]["message"]["content"]
