"""Embeddings pass what chats pass: a place, a key, a deadline, the log, `last`."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import orjson
import pytest

from tests.support.day_one import Json, Running, Seen, answering, failure, running
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

PATH = "/v1/embeddings"
BODY: Json = {"model": "emb", "input": "a text about my health"}
VECTORS: Json = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
    "model": "up-emb",
    "usage": {"prompt_tokens": 7, "total_tokens": 7},
}


def text(url: str, kind: str = "compatible", server: str = "", timeouts: str = "") -> str:
    return (
        f'[server]\n{server}\n[upstreams.relay]\nkind = "{kind}"\nbase_url = "{url}"\n'
        f'timeouts = {{ {timeouts} }}\n[models.emb]\nupstream = "relay"\nname = "up-emb"\n'
        '[upstreams.s]\nkind = "scripted"\n[models.demo]\nupstream = "s"\n'
    )


async def silent(peer: Peer) -> None:
    await peer.request()
    await peer.left()


def noting(reached: asyncio.Event) -> Behaviour:
    async def behave(peer: Peer) -> None:
        await peer.request()
        reached.set()
        await peer.left()

    return behave


def saying(status: str, body: bytes) -> Behaviour:
    return answering(Seen(), lambda *_: (status, body))


def lines(gateway: Running) -> list[Json]:
    gateway.app.chat.log.flush()
    assert isinstance(gateway.log, io.StringIO)
    return [orjson.loads(line) for line in gateway.log.getvalue().splitlines()]


def play(script: Any) -> None:
    asyncio.run(asyncio.wait_for(script, 20))


@pytest.mark.parametrize("kind", ["compatible", "ollama"])
def test_a_client_that_leaves_cancels_the_upstream_and_is_logged(kind: str) -> None:
    async def script() -> None:
        reached = asyncio.Event()
        async with loopback(noting(reached)) as up, running(text(up.url, kind)) as gateway:
            asking = asyncio.create_task(gateway.post(PATH, BODY))
            await reached.wait()
            asking.cancel()
            await asyncio.wait_for(up.gone.wait(), 2)
            await asyncio.sleep(0.05)
            (line,) = lines(gateway)
            assert (line["path"], line["status"], line["client_gone"]) == (PATH, 499, True)

    play(script())


@pytest.mark.parametrize("kind", ["compatible", "ollama"])
@pytest.mark.parametrize("timeouts", ["plain = 0.2", "total = 0.2", "first_event = 0.2"])
def test_the_configs_deadlines_hold(kind: str, timeouts: str) -> None:
    async def script() -> None:
        async with (
            loopback(silent) as up,
            running(text(up.url, kind, timeouts=timeouts)) as gateway,
        ):
            status, answer = await gateway.post(PATH, BODY)
            assert (status, answer["error"]["code"]) == (504, "upstream_timeout")
            await asyncio.wait_for(up.gone.wait(), 2)

    play(script())


def test_chats_and_embeddings_share_their_places() -> None:
    async def script() -> None:
        reached = asyncio.Event()
        async with (
            loopback(noting(reached)) as up,
            running(text(up.url, server="max_concurrent = 1")) as gateway,
        ):
            asking = asyncio.create_task(gateway.post(PATH, BODY))
            await reached.wait()
            hello = {"model": "demo", "messages": [{"role": "user", "content": "hi"}]}
            for path, body in ((PATH, BODY), ("/v1/chat/completions", hello)):
                status, answer = await gateway.post(path, body)
                assert (status, answer["error"]["code"]) == (503, "overloaded")
            asking.cancel()
            await asyncio.wait_for(up.gone.wait(), 2)
            assert (await gateway.chat(hello))[0] == 200

    play(script())


def test_an_answer_is_a_line_in_the_log_and_can_be_looked_at() -> None:
    async def script() -> None:
        async with (
            loopback(saying("200 OK", orjson.dumps(VECTORS))) as up,
            running(text(up.url)) as gateway,
        ):
            status, answer = await gateway.post(PATH, BODY)
            assert (status, answer) == (200, {**VECTORS, "model": "emb"})
            (line,) = lines(gateway)
            assert (line["path"], line["model"], line["usage"]) == (PATH, "emb", [7, 0])
            assert "health" not in gateway.log.getvalue()
            _, listed = await gateway.get("/v1/x_usetool/last")
            _, one = await gateway.get(f"/v1/x_usetool/last/{listed['data'][0]['id']}")
            assert orjson.loads(one["body"]) == BODY
            (call,) = one["calls"]
            assert orjson.loads(call["body"]) == {**BODY, "model": "up-emb"}
            assert orjson.loads(call["answer"]) == VECTORS
            assert f"{gateway.url}{PATH}" in one["curl"]

    play(script())


def test_a_failure_is_told_like_a_chats() -> None:
    async def script() -> None:
        async with (
            loopback(saying("429 Slow", failure("slow down"))) as up,
            running(text(up.url, server='keys = ["k"]')) as gateway,
        ):
            assert (await gateway.post(PATH, BODY))[0] == 401
            status, answer = await gateway.post(PATH, BODY, "k")
            assert (status, answer["error"]["code"]) == (429, "rate_limit_exceeded")
            assert [line["status"] for line in lines(gateway)] == [401, 429]
            _, listed = await gateway.get("/v1/x_usetool/last", "k")
            assert [one["status"] for one in listed["data"]] == [429, 401]

    play(script())
