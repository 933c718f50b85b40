"""Small switches people expect: pages of other origins, the client's own key, the log."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import orjson
import pytest

from middleware import config
from middleware.config import ConfigError
from middleware.server.log import Log, readable
from tests.support.day_one import Json, Reply, Seen, answering, completion, running
from tests.support.upstreams.loopback import loopback

DEMO = '[upstreams.demo]\nkind = "scripted"\n[models.demo]\nupstream = "demo"\n'
HELLO: Json = {"model": "demo", "messages": [{"role": "user", "content": "hi"}]}
PREFLIGHT = {
    "origin": "https://chat.test",
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,x-stainless-lang",
}


@pytest.mark.parametrize(
    ("origins", "allowed"),
    [('["https://chat.test"]', "https://chat.test"), ('["*"]', "*"), ('["https://b.test"]', None)],
)
def test_pages_of_the_origins_that_are_named_may_call(origins: str, allowed: str | None) -> None:
    async def run() -> None:
        async with running(f'[server]\ncors_origins = {origins}\nkeys = ["k"]\n{DEMO}') as gateway:
            url = f"{gateway.url}/v1/chat/completions"
            async with gateway.session.options(url, headers=PREFLIGHT) as answer:
                assert answer.headers.get("access-control-allow-origin") == allowed
                if allowed:
                    assert answer.status == 200
                    assert "authorization" in answer.headers["access-control-allow-headers"]
            for body, status in ((HELLO, 200), ({**HELLO, "model": "none"}, 404)):
                origin = {"origin": "https://chat.test", "authorization": "Bearer k"}
                async with gateway.session.post(url, json=body, headers=origin) as answer:
                    assert answer.status == status
                    assert answer.headers.get("access-control-allow-origin") == allowed
            stream = {**HELLO, "stream": True}
            async with gateway.session.post(url, json=stream, headers=origin) as answer:
                assert answer.headers.get("access-control-allow-origin") == allowed
                assert (await answer.read()).endswith(b"data: [DONE]\n\n")

    asyncio.run(run())


def test_without_origins_nothing_is_allowed_and_options_are_still_answered() -> None:
    async def run() -> None:
        async with running(f'[server]\nkeys = ["k"]\n{DEMO}') as gateway:
            for path in ("/v1/chat/completions", "/v1/models", "/v1/embeddings"):
                async with gateway.session.options(gateway.url + path, headers=PREFLIGHT) as answer:
                    assert answer.status == 204
                    assert "access-control-allow-origin" not in answer.headers

    asyncio.run(run())


# The client's own key --------------------------------------------------------------------------

PASSED = """
[upstreams.relay]
kind = "KIND"
base_url = "URL"
api_key = "client"
[models.m]
upstream = "relay"
name = "claude-sonnet-4-5"
tools = "native"
"""


def claude_or_not(path: str, head: str, body: Json) -> Reply:
    if path != "/v1/messages":
        return "200 OK", completion()
    said = {"id": "msg_1", "type": "message", "role": "assistant", "model": "c", "content": []}
    return "200 OK", orjson.dumps({**said, "stop_reason": "end_turn", "usage": {}})


@pytest.mark.parametrize(
    ("kind", "header"),
    [("compatible", "authorization: bearer "), ("claude", "x-api-key: ")],
)
def test_the_callers_key_opens_the_upstream_and_is_shown_nowhere(kind: str, header: str) -> None:
    async def run() -> None:
        seen = Seen()
        async with loopback(answering(seen, claude_or_not)) as up:
            text = PASSED.replace("URL", up.url).replace("KIND", kind)
            async with running(text) as gateway:
                for key in ("caller-canary-1", "caller-canary-2"):
                    status, answer = await gateway.chat({**HELLO, "model": "m"}, key)
                    assert status == 200, answer
                    assert f"{header}{key}" in seen.requests[-1][1]
                _, listed = await gateway.get("/v1/x_usetool/last", "caller-canary-2")
                assert len(listed["data"]) == 1
                where = f"/v1/x_usetool/last/{listed['data'][0]['id']}"
                _, one = await gateway.get(where, "caller-canary-2")
                assert "canary" not in orjson.dumps(one).decode()
                assert "$CLIENT_KEY" in one["calls"][0]["curl"]
                status, answer = await gateway.chat({**HELLO, "model": "m"})
                assert status == 401
                assert "Send the key you have for it" in answer["error"]["message"]
                assert len(seen.requests) == 2

    asyncio.run(run())


def test_a_request_has_one_key_so_the_gateway_cannot_ask_for_one_too() -> None:
    text = PASSED.replace("URL", "http://up.test").replace("KIND", "compatible")
    with pytest.raises(ConfigError) as caught:
        config.parse(f'[server]\nkeys = ["k"]\n{text}', environment={})
    assert [mistake.key for mistake in caught.value.mistakes] == ["upstreams.relay.api_key"]


@pytest.mark.parametrize(
    ("more", "fine"), [("", True), (DEMO, True), ("[upstreams.o]\nkind = 'ollama'\n", False)]
)
def test_strangers_may_call_only_where_all_is_at_their_own_cost(more: str, fine: bool) -> None:
    text = PASSED.replace("URL", "http://up.test").replace("KIND", "compatible")
    text = f'[server]\nhost = "0.0.0.0"\n{text}{more}'
    if fine:
        assert config.parse(text, environment={}).server.keys == ()
        return
    with pytest.raises(ConfigError, match=r"server\.keys"):
        config.parse(text, environment={})


# The log ---------------------------------------------------------------------------------------

LINE: dict[str, Any] = {
    "id": "req_1",
    "model": "sonnet",
    "status": 200,
    "seconds": 1.25,
    "stream": True,
    "first_event": 0.5,
    "upstream": "anthropic",
    "upstream_model": "claude-sonnet-4-5",
    "finish": "tool_calls",
    "usage": [120, 30],
}
FAILED = {"code": "upstream_truncated", "message": "it broke off"}


def test_a_line_for_people_says_what_matters_in_order() -> None:
    assert readable(LINE, "12:00:00") == (
        "12:00:00  200  sonnet  → anthropic claude-sonnet-4-5  1.25s (first 0.50s)  "
        "120+30 tokens  tool_calls  req_1"
    )
    broken = readable({**LINE, "error": FAILED}, "12:00:00")
    assert "\033[31m200" in broken
    assert "upstream_truncated: it broke off" in broken


def test_nothing_a_stranger_wrote_steers_the_terminal() -> None:
    line = readable({**LINE, "model": "\033[2Jx\nreq_2", "status": 404}, "12:00:00")
    assert "\n" not in line
    assert "\033[2J" not in line


@pytest.mark.parametrize(
    ("level", "written"),
    [
        ("debug", [200, 404, 502]),
        ("info", [200, 404, 502]),
        ("warning", [404, 502]),
        ("error", [502]),
    ],
)
@pytest.mark.parametrize("people", [True, False])
def test_the_level_says_which_requests_are_told(
    level: str, written: list[int], people: bool
) -> None:
    async def run() -> None:
        out = io.StringIO()
        log = Log(out, level, people)
        for status in (200, 404, 502):
            log.write({**LINE, "status": status})
        log.flush()
        lines = out.getvalue().splitlines()
        if people:
            assert [one for one in lines for status in written if str(status) in one] == lines
            assert len(lines) == len(written)
        else:
            assert [orjson.loads(one)["status"] for one in lines] == written

    asyncio.run(run())


def test_a_stream_that_broke_is_an_error_to_the_log_although_it_began_with_200() -> None:
    async def run() -> None:
        out = io.StringIO()
        log = Log(out, "error")
        log.write({**LINE, "error": FAILED})
        log.flush()
        assert orjson.loads(out.getvalue())["error"] == FAILED

    asyncio.run(run())


@pytest.mark.parametrize(
    "path",
    ["/chat/completions", "/v1/chat/completions/chat/completions", "/models", "/v1/v1/models"],
)
def test_a_wrong_base_url_is_explained(path: str) -> None:
    async def run() -> None:
        async with running(DEMO) as gateway:
            listing = path.endswith("models")
            status, answer = await (gateway.get(path) if listing else gateway.post(path, HELLO))
            assert status == 404
            assert "base URL must end in /v1" in answer["error"]["message"]

    asyncio.run(run())
