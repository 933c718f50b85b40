"""Embeddings as clients ask for them: shapes, vectors, mistakes."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from tests.server.upstreams import RELAY, ollama, shipped
from tests.support.day_one import Json, Seen, answering, completion, running
from tests.support.upstreams.loopback import loopback


def embedded(path: str, head: str, body: Json) -> tuple[str, bytes]:
    if path != "/v1/embeddings":
        return "200 OK", completion()
    data = [{"object": "embedding", "index": 0, "embedding": "AAAAPw=="}]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    said = {"object": "list", "data": data, "model": "m", "usage": usage}
    return "200 OK", orjson.dumps(said)


def test_a_plain_string_is_embedded_as_dify_validates() -> None:
    async def run() -> None:
        seen = Seen()
        async with (
            loopback(answering(seen, embedded)) as up,
            running(RELAY.replace("URL", up.url)) as gateway,
        ):
            body: Json = {"model": "relay/emb", "input": "ping", "encoding_format": "base64"}
            status, answer = await gateway.post("/v1/embeddings", body)
            assert status == 200
            assert answer["model"] == "relay/emb"
            assert answer["data"][0]["embedding"] == "AAAAPw=="
            assert seen.bodies("/v1/embeddings") == [{**body, "model": "emb"}]
            status, _ = await gateway.post("/v1/embeddings", {**body, "input": [[1, 2], [3]]})
            assert status == 200

    asyncio.run(run())


def test_ollamas_vectors_take_openais_shape() -> None:
    async def run() -> None:
        async with loopback(answering(Seen(), ollama)) as up, running(shipped(up.url)) as gateway:
            body: Json = {"model": "ollama/plain:1b", "input": ["a", "b"]}
            status, answer = await gateway.post("/v1/embeddings", body)
            assert status == 200
            assert [one["embedding"] for one in answer["data"]] == [[0.5, -1.0]] * 2
            assert answer["usage"] == {"prompt_tokens": 4, "total_tokens": 4}
            packed = {**body, "input": "a", "encoding_format": "base64"}
            _, answer = await gateway.post("/v1/embeddings", packed)
            assert answer["data"][0]["embedding"] == "AAAAPwAAgL8="
            status, answer = await gateway.post("/v1/embeddings", {**body, "input": [1, 2]})
            assert (status, answer["error"]["param"]) == (400, "input")
            status, answer = await gateway.post("/v1/embeddings", {**body, "model": "demo"})
            assert (status, answer["error"]["param"]) == (400, "model")
            assert "request id req_" in answer["error"]["message"]

    asyncio.run(run())


@pytest.mark.parametrize(
    "change",
    [{"input": ""}, {"input": []}, {"input": [""]}, {"input": 3}, {"input": ["a", 1]},
     {"encoding_format": "hex"}, {"dimensions": 0}, {"model": ""}],
)  # fmt: skip
def test_misshapen_embedding_requests_are_named(change: Json) -> None:
    async def run() -> None:
        async with running(RELAY.replace("URL", "http://127.0.0.1:1")) as gateway:
            body = {"model": "relay/emb", "input": "a", **change}
            status, answer = await gateway.post("/v1/embeddings", body)
            assert status == 400
            assert answer["error"]["param"] == next(iter(change))

    asyncio.run(run())


VECTOR: Json = {"object": "embedding", "index": 0, "embedding": [0.5]}
NO_KEY: Json = {
    "error": {"message": "Invalid API key", "type": "authentication_error", "code": 401}
}


@pytest.mark.parametrize("path", ["/v1/embeddings", "/api/embed", "/api/embeddings"])
@pytest.mark.parametrize(
    ("said", "code"),
    [
        (["x"], "upstream_unreadable"),
        (None, "upstream_unreadable"),
        ({"data": "x"}, "upstream_unreadable"),
        ({"data": []}, "upstream_unreadable"),
        ({"data": ["x"]}, "upstream_unreadable"),
        ({"data": [VECTOR, {"index": 1}]}, "upstream_unreadable"),
        ({"data": [{"embedding": 5}]}, "upstream_unreadable"),
        ({"error": "the model is loading"}, "upstream_error"),
        (NO_KEY, "upstream_auth"),
    ],
)
def test_an_answer_without_vectors_is_the_upstreams_error(
    path: str, said: object, code: str
) -> None:
    async def run() -> None:
        def odd(path: str, head: str, body: Json) -> tuple[str, bytes]:
            return "200 OK", orjson.dumps(said)

        async with (
            loopback(answering(Seen(), odd)) as up,
            running(RELAY.replace("URL", up.url)) as gateway,
        ):
            texts = "prompt" if path == "/api/embeddings" else "input"
            status, answer = await gateway.post(path, {"model": "relay/emb", texts: "a"})
            assert status >= 500
            if path == "/v1/embeddings":
                assert answer["error"]["code"] == code
            else:
                assert "relay" in answer["error"]

    asyncio.run(run())


def test_a_vector_of_another_form_reaches_its_client() -> None:
    async def run() -> None:
        sparse = {"embedding": {"indices": [1], "values": [0.5]}, "index": 0}

        def forms(path: str, head: str, body: Json) -> tuple[str, bytes]:
            return "200 OK", orjson.dumps({"data": [sparse]})

        async with (
            loopback(answering(Seen(), forms)) as up,
            running(RELAY.replace("URL", up.url)) as gateway,
        ):
            asked: Json = {"model": "relay/e", "input": "a"}
            status, answer = await gateway.post("/v1/embeddings", asked)
            assert (status, answer["data"]) == (200, [sparse])

    asyncio.run(run())


@pytest.mark.parametrize("vectors", [5, ["x"], [[0.5], [0.5]], [["x"]], [[None]]])
def test_ollamas_vectors_are_lists_of_numbers(vectors: object) -> None:
    async def run() -> None:
        def odd(path: str, head: str, body: Json) -> tuple[str, bytes]:
            return "200 OK", orjson.dumps({"embeddings": vectors})

        async with loopback(answering(Seen(), odd)) as up, running(shipped(up.url)) as gateway:
            body: Json = {"model": "ollama/plain:1b", "input": "a", "encoding_format": "base64"}
            status, answer = await gateway.post("/v1/embeddings", body)
            assert (status, answer["error"]["code"]) == (502, "upstream_unreadable")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("said", "counted"), [(7, [7, 0]), (7.0, [7, 0]), (-5, None), (1 << 63, None)]
)
def test_tokens_are_counted_as_a_chats_are(said: float, counted: list[int] | None) -> None:
    async def run() -> None:
        def counts(path: str, head: str, body: Json) -> tuple[str, bytes]:
            return "200 OK", orjson.dumps({"data": [VECTOR], "usage": {"prompt_tokens": said}})

        async with (
            loopback(answering(Seen(), counts)) as up,
            running(RELAY.replace("URL", up.url)) as gateway,
        ):
            await gateway.post("/v1/embeddings", {"model": "relay/emb", "input": "a"})
            await gateway.get("/v1/x_usetool/last")
        line = orjson.loads(gateway.log.getvalue().splitlines()[0])
        assert line.get("usage") == counted

    asyncio.run(run())
