"""Every address of the app, and every other one."""

from __future__ import annotations

import re

import pytest
from starlette.routing import Route

from middleware.server.signposts import CHAT
from tests.server.app.playing import play
from tests.support.adapters import repeating
from tests.support.door import ANSWER, Door, Heard, chat, door

ROUTES = {
    (CHAT, "POST"),
    ("/v1/models", "GET"),
    ("/v1/tools", "GET"),
    ("/v1/usage", "GET"),
    ("/v1/models/{model:path}", "GET"),
    ("/v1/embeddings", "POST"),
    ("/v1/x_usetool/last", "GET"),
    ("/v1/x_usetool/last/{identity}", "GET"),
    ("/v1/x_usetool/last/{identity}/cassette", "GET"),
    ("/v1/x_usetool/cassettes/{name:path}", "GET"),
    ("/v1/x_usetool/cassettes/{name:path}/rewind", "POST"),
    ("/healthz", "GET"),
    ("/readyz", "GET"),
    ("/metrics", "GET"),
    ("/v1/messages", "POST"),
    ("/v1/messages/count_tokens", "POST"),
    ("/v1/responses", "GET"),
    ("/v1/responses", "POST"),
    ("/v1/responses/compact", "POST"),
    ("/v1/responses/{response_id}", "GET"),
    ("/v1/responses/{response_id}", "DELETE"),
    ("/v1/responses/{response_id}/cancel", "POST"),
    ("/v1/responses/{response_id}/input_items", "GET"),
    ("/api/chat", "POST"),
    ("/api/generate", "POST"),
    ("/api/version", "GET"),
    ("/api/tags", "GET"),
    ("/api/ps", "GET"),
    ("/api/show", "POST"),
    ("/api/pull", "POST"),
    ("/api/embed", "POST"),
    ("/api/embeddings", "POST"),
    ("/", "GET"),
    ("/docs", "GET"),
    ("/openapi.json", "GET"),
}

# Refused with words of their own, and not described.
NOT_HERE = {
    *("copy", "create", "push", "delete", "blobs"),
    *("me", "signout", "status", "experimental", "conversations", "complete", "messages"),
}
BELOW_OLLAMA = (
    ("/api/copy", 501, "does not keep models"),
    ("/api/blobs/sha256:0", 501, "does not keep models"),
    ("/api/experimental/x", 404, "not found"),
    ("/api/me", 401, "unauthorized"),
    ("/api/nothing", 404, "Unknown request URL"),
    ("/api/tags", 405, "Method POST"),
)


def test_these_are_all_routes() -> None:
    found = set()
    for route in play(_door).app.app.loaded().routes:
        assert isinstance(route, Route)
        found |= {(route.path, method) for method in (route.methods or set()) - {"HEAD"}}
    refused = found - ROUTES
    assert {re.split("[/{]", path)[2] for path, _ in refused} == NOT_HERE
    assert found - refused == ROUTES


def test_wrong_addresses_below_a_door_are_told_in_its_words() -> None:
    async def script() -> None:
        there = door()
        heard = await there.ask(path="/v1/v1/messages")
        assert (heard.status, heard.json()["type"]) == (404, "error")
        assert "remove /v1 from the base URL" in heard.json()["error"]["message"]
        for path, status, words in BELOW_OLLAMA:
            heard = await there.ask({"model": "demo"}, path=path)
            assert heard.status == status
            assert words in heard.json()["error"]

    play(script)


async def _door() -> Door:
    return door()


ELSEWHERE: tuple[tuple[str, str, int, str, str], ...] = (
    ("POST", "/", 404, "unknown_url", "POST /v1/chat/completions"),
    ("DELETE", "/", 404, "unknown_url", "must end in /v1"),
    ("POST", "/v1/nope", 404, "unknown_url", "Unknown request URL: POST /v1/nope"),
    ("GET", "/redoc", 404, "unknown_url", "Unknown request URL"),
    ("GET", "/docs/", 404, "unknown_url", "Unknown request URL"),
    ("GET", "/docs/oauth2-redirect", 404, "unknown_url", "Unknown request URL"),
    ("POST", "/docs", 405, "method_not_allowed", "Method POST"),
    ("POST", "/chat/completions", 404, "unknown_url", "must end in /v1"),
    ("POST", "/v1/chat/completions/", 404, "unknown_url", "The path is /v1/chat/completions"),
    ("POST", "/v1/v1/chat/completions", 404, "unknown_url", "must end in /v1"),
    ("POST", "//v1/chat/completions", 404, "unknown_url", "must end in /v1"),
    ("GET", "/v1/../etc/passwd", 404, "unknown_url", "Unknown request URL"),
    ("GET", CHAT, 405, "method_not_allowed", "Method GET is not allowed"),
    ("GET", CHAT, 405, "method_not_allowed", ": send POST. GET /docs shows"),
    ("POST", "/v1/nope", 404, "unknown_url", "GET /docs shows all"),
    ("PUT", CHAT, 405, "method_not_allowed", "Method PUT"),
    ("BREW", CHAT, 405, "method_not_allowed", "Method BREW"),
    ("POST", "/v1/models", 405, "method_not_allowed", "Method POST"),
    ("DELETE", "/v1/models/demo", 405, "method_not_allowed", "Method DELETE"),
    ("POST", "/healthz", 405, "method_not_allowed", "Method POST"),
    ("GET", "/v1/models/none", 404, "model_not_found", "'none' does not exist"),
    ("GET", "/v1/models/", 404, "model_not_found", "does not exist"),
    ("POST", "/responses", 404, "unknown_url", "Clients add /responses themselves"),
    ("POST", "/v1/v1/responses", 404, "unknown_url", "The path is /v1/responses, and this was /v1"),
    ("GET", "/models", 404, "unknown_url", "base URL must end in /v1"),
    ("POST", "/messages", 400, "unknown_url", "The path is /v1/messages, and this was /messages"),
    ("POST", "/messages", 400, "unknown_url", "The Vercel AI SDK adds /messages alone"),
    ("POST", "/v1/api/generate", 404, "unknown_url", "The path is /api/generate, and this was"),
    ("GET", "/v1/api/tags", 404, "unknown_url", "so their base URL has no path"),
    ("POST", "/v1/api/chat", 404, "unknown_url", "wants a base URL that ends in /v1"),
    ("POST", "/v1/" + "api/" * 20 + "x", 404, "unknown_url", "The path is /api/api/"),
    ("GET", "/apis", 404, "unknown_url", "Unknown request URL"),
    ("GET", "/v1/message", 404, "unknown_url", "Unknown request URL"),
    ("POST", "/v1/completions", 404, "unsupported_api", "POST /v1/chat/completions"),
)


@pytest.mark.parametrize(("method", "path", "status", "code", "words"), ELSEWHERE)
def test_every_other_address_answers_in_openais_shape_and_says_where_to_go(
    method: str, path: str, status: int, code: str, words: str
) -> None:
    async def script() -> Heard:
        return await door().ask(method=method, path=path)

    heard = play(script)
    assert (heard.status, heard.error()["code"]) == (status, code)
    assert words in heard.error()["message"]
    assert heard.headers["x-request-id"] in heard.error()["message"]
    assert "location" not in heard.headers
    assert ("allow" in heard.headers) is (status == 405)


@pytest.mark.parametrize(("method", "path", "status", "code", "words"), ELSEWHERE)
def test_every_other_address_is_logged_and_kept(
    method: str, path: str, status: int, code: str, words: str
) -> None:
    async def script() -> None:
        there = door()
        await there.ask(b"private", method=method, path=path)
        (line,) = there.lines()
        told = (line["method"], line["path"], line["status"], line["error"]["code"])
        assert told == (method, path, status, code)
        (record,) = there.app.chat.records.of(None)
        assert (record.visit.path, record.visit.status, record.body) == (path, status, b"")

    play(script)


def test_a_request_without_the_right_key_is_logged_and_kept_without_its_body() -> None:
    async def script() -> None:
        there = door(server='keys = ["K"]')
        for how in ({}, {"path": "/v1/embeddings"}, {"method": "GET", "path": "/v1/models"}):
            heard = await there.ask(chat(), **how)
            assert heard.status == 401
        assert [line["error"]["code"] for line in there.lines()] == ["invalid_api_key"] * 3
        records = list(there.app.chat.records.of(None))
        assert [record.body for record in records] == [b""] * 3
        assert {record.visit.path for record in records} == {CHAT, "/v1/embeddings", "/v1/models"}

    play(script)


def test_what_strangers_ask_drives_nothing_out_and_looking_leaves_no_trace() -> None:
    async def script() -> None:
        there = door(repeating(ANSWER), 'keys = ["K"]\nkeep_last = 2')
        key = [("authorization", "Bearer K")]
        for _ in range(2):
            await there.ask(chat(), headers=key)
        for number in range(200):
            await there.ask(b"x" * 10_000)
            await there.ask(path="/\x1b[2J" + "a" * 10_000 + str(number))
            await there.ask(method="GET", path="/v1/x_usetool/last")
        heard = await there.ask(method="GET", path="/v1/x_usetool/last", headers=key)
        statuses = [one["status"] for one in heard.json()["data"]]
        assert sorted(statuses[-2:]) == [200, 200]
        assert set(statuses[:-2]) == {401, 404}
        assert len(statuses) < 50
        assert len(heard.body) < 20_000
        assert b"\x1b" not in there.log.getvalue().encode() + heard.body
        assert b"u001b" not in heard.body

    play(script)


def test_a_long_path_is_not_repeated_whole() -> None:
    async def script() -> Heard:
        return await door().ask(method="GET", path="/" + "a" * 70_000)

    assert len(play(script).body) < 1000


def test_every_answer_has_an_id() -> None:
    async def script() -> None:
        there = door()
        for path in ("/v1/models", "/v1/models/demo", "/healthz", "/v1/nope"):
            heard = await there.ask(method="GET", path=path)
            assert heard.headers["x-request-id"].startswith("req_")

    play(script)
