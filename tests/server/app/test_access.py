"""Who may ask the app, and how much."""

from __future__ import annotations

import asyncio

import pytest

from tests.server.app.playing import SECRET, play
from tests.support.adapters import Wait, repeating
from tests.support.door import ANSWER, Heard, chat, door

KEYS = 'keys = ["K"]'
KNOCKS: tuple[tuple[list[tuple[str, str]], int], ...] = (
    ([("authorization", "Bearer K")], 200),
    ([("x-api-key", "K")], 200),
    ([("api-key", "K")], 200),
    ([], 401),
    ([("authorization", f"Bearer {SECRET}")], 401),
    ([("authorization", "Bearer K"), ("x-api-key", "other")], 200),
    ([("authorization", "Bearer wrong"), ("x-api-key", "other")], 401),
)


@pytest.mark.parametrize(("headers", "status"), KNOCKS)
def test_only_keys_open(headers: list[tuple[str, str]], status: int) -> None:
    async def script() -> None:
        model = repeating(ANSWER)
        there = door(model, KEYS)
        for how in ({}, {"method": "GET", "path": "/v1/models"}):
            heard = await there.ask(chat(), headers=headers, **how)
            assert heard.status == status
            if status == 401:
                assert heard.error()["code"] == "invalid_api_key"
                assert SECRET not in heard.body.decode()
        assert len(model.asked) == (status == 200)

    play(script)


def test_health_is_open_to_all() -> None:
    async def script() -> None:
        there = door(server=KEYS)
        for path, status in (("/healthz", "ok"), ("/readyz", "ready")):
            heard = await there.ask(method="GET", path=path)
            assert (heard.status, heard.json()["status"]) == (200, status)

    play(script)


def test_what_is_too_much_at_once_is_refused_at_once_and_health_is_not() -> None:
    async def script() -> None:
        wait = Wait()
        there = door(repeating(wait, ANSWER), "max_concurrent = 1")
        first, task = there.begin(chat())
        await wait.until_reached()
        heard = await there.ask(b"not even read")
        assert (heard.status, heard.error()["code"]) == (503, "overloaded")
        assert heard.headers["retry-after"] == "1"
        assert "x-should-retry" not in heard.headers
        assert (await there.ask(method="GET", path="/healthz")).status == 200
        wait.over.set()
        await task
        assert first.status == 200
        assert (await there.chat()).status == 200

    play(script)


def test_a_client_that_fills_the_gateway_leaves_another_its_share() -> None:
    async def script() -> None:
        wait = Wait()
        there = door(repeating(wait, ANSWER), 'max_concurrent = 2\nkeys = ["a", "b"]')
        a, b = [[("authorization", f"Bearer {key}")] for key in "ab"]
        asking = [there.begin(chat(), headers=a) for _ in range(2)]
        await wait.until_reached()
        assert (await there.ask(chat(), headers=a)).status == 503
        asking.append(there.begin(chat(), headers=b))
        await asyncio.sleep(0)
        assert (await there.ask(chat(), headers=b)).status == 503
        wait.over.set()
        await asyncio.gather(*[task for _, task in asking])
        assert [heard.status for heard, _ in asking] == [200] * 3

    play(script)


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"x" * 101, [], 413, "request_too_large"),
        (b"", [("content-length", "101"), ("expect", "100-continue")], 413, "request_too_large"),
        (b"x", [("content-encoding", "gzip")], 415, "invalid_value"),
        (b"x", [("a", "b")] * 101, 431, "invalid_value"),
        (b"{", [], 400, "invalid_json"),
    ],
)
def test_what_is_too_large_or_unreadable_is_refused(
    body: bytes, headers: list[tuple[str, str]], status: int, code: str
) -> None:
    async def script() -> Heard:
        return await door(repeating(ANSWER), "max_body = 100").ask(body, headers=headers)

    heard = play(script)
    assert (heard.status, heard.error()["code"]) == (status, code)
