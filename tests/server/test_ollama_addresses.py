"""What clients of Ollama ask beside chats: which models there are, and what they can do."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from tests.server.app.playing import play
from tests.support.day_one import Json, Seen, answering, running
from tests.support.door import Heard, door
from tests.support.upstreams.loopback import loopback

WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
KEY = [("authorization", "Bearer K")]
DETAILS = {
    *("parent_model", "format", "family", "families"),
    *("parameter_size", "quantization_level"),
}


def asked(path: str, body: Json | bytes = b"", method: str = "POST", server: str = "") -> Heard:
    async def script() -> Heard:
        return await door(server=server).ask(body, method=method, path=path)

    heard: Heard = play(script)
    return heard


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/", "/api/version", "/api/tags"])
def test_clients_that_look_whether_it_is_there_find_it(method: str, path: str) -> None:
    assert asked(path, method=method).status == 200


def test_it_says_the_version_of_the_config() -> None:
    assert asked("/api/version", method="GET").json() == {"version": "0.33.0"}
    told = asked("/api/version", method="GET", server='ollama_version = "0.40.1"').json()
    assert told == {"version": "0.40.1"}


def test_a_tag_has_every_member_that_strict_clients_read() -> None:
    (tag,) = asked("/api/tags", method="GET").json()["models"]
    assert tag["name"] == tag["model"] == "demo"
    assert tag["details"].keys() >= DETAILS
    assert tag["details"]["families"] == [tag["details"]["family"]]
    assert WHEN.fullmatch(tag["modified_at"])
    assert re.fullmatch("[0-9a-f]{64}", tag["digest"])
    assert tag["size"] > 0
    assert tag["capabilities"][:2] == ["completion", "tools"]


@pytest.mark.parametrize("body", [{"model": "demo"}, {"name": "demo"}, {"model": "demo:latest"}])
def test_a_model_is_shown_by_each_of_its_names(body: Json) -> None:
    shown = asked("/api/show", body).json()
    family = shown["model_info"]["general.architecture"]
    assert "." not in family
    assert shown["model_info"][f"{family}.context_length"] == 32_768
    assert shown["model_info"]["general.basename"] == "demo"
    assert shown["details"].keys() == DETAILS
    texts = ("license", "modelfile", "parameters", "template", "modified_at")
    assert all(type(shown[name]) is str for name in texts)


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/api/show", {"model": "nope"}, 404, "model 'nope' not found"),
        ("/api/show", {}, 400, "model is required"),
        ("/api/show", {"model": 5}, 400, "model is required"),
        ("/api/pull", {"model": "nope"}, 404, "model 'nope' not found"),
        ("/api/chat", {"model": "nope"}, 404, "model 'nope' not found"),
        ("/api/generate", {"model": "Demo"}, 404, "Did you mean 'demo'"),
        ("/api/embed", {"input": "x"}, 400, "model is required"),
        ("/api/embed", {"model": "demo", "input": 5}, 400, "'input' must be"),
        ("/api/embed", {"model": "demo", "input": "x"}, 400, "makes no embeddings"),
    ],
)
def test_what_is_refused(path: str, body: Json, status: int, words: str) -> None:
    heard = asked(path, body)
    assert (heard.status, heard.json().keys()) == (status, {"error"})
    assert words in heard.json()["error"]


def test_a_model_that_is_there_counts_as_fetched() -> None:
    lines = asked("/api/pull", {"model": "demo"}).body
    assert lines == b'{"status":"pulling manifest"}\n{"status":"success"}\n'
    assert asked("/api/pull", {"model": "demo", "stream": False}).json() == {"status": "success"}


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
def test_loading_asks_no_upstream(path: str) -> None:
    heard = asked(path, {"model": "demo:latest"})
    said = heard.json()
    assert (heard.status, said["model"], said["done"]) == (200, "demo:latest", True)
    assert said["done_reason"] == "load"


def test_the_same_keys_hold_here() -> None:
    async def script() -> None:
        there = door(server='keys = ["K"]')
        every = ("/api/version", "/api/tags", "/api/ps", "/api/show", "/api/pull", "/api/chat")
        for path in (*every, "/api/embed", "/api/delete"):
            method = "GET" if path in every[:3] else "POST"
            heard = await there.ask({"model": "demo"}, method=method, path=path)
            assert heard.status == 401
            assert heard.json()["error"].startswith("unauthorized")
        heard = await there.ask({"model": "demo"}, path="/api/show", headers=KEY)
        assert heard.status == 200

    play(script)


def test_a_door_that_is_closed_says_so_in_its_words() -> None:
    heard = asked("/api/chat", {"model": "demo"}, server='doors = ["chat"]')
    assert heard.status == 501
    assert "`doors` under [server]" in heard.json()["error"]
    assert asked("/api/tags", method="GET", server='doors = ["chat"]').status == 501


def test_vectors_come_by_the_same_way_as_at_openais_address() -> None:
    vectors = b'{"data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":7}}'
    text = '[upstreams.r]\nkind = "compatible"\nbase_url = "{}"\n[models.emb]\nupstream = "r"\n'

    async def script() -> None:
        seen = Seen()
        answer = answering(seen, lambda *_: ("200 OK", vectors))
        async with loopback(answer) as up, running(text.format(up.url)) as gateway:
            for path, body, said in (
                ("/api/embed", {"input": "x"}, ("embeddings", [[0.5]])),
                ("/api/embed", {"input": ["x"], "dimensions": 3}, ("embeddings", [[0.5]])),
                ("/api/embed", {"input": ""}, ("embeddings", [])),
                ("/api/embeddings", {"prompt": "x"}, ("embedding", [0.5])),
                ("/api/embeddings", {"prompt": ""}, ("embedding", [])),
            ):
                status, told = await gateway.post(path, {"model": "emb:latest", **body})
                assert (status, told[said[0]]) == (200, said[1])
            inputs = [body["input"] for body in seen.bodies("/embeddings")]
            assert inputs == ["x", ["x"], "x"]

    asyncio.run(asyncio.wait_for(script(), 20))


# The list of models, in both shapes ------------------------------------------------------------


THREE = """
[upstreams.script]
kind = "scripted"
[models.a]
upstream = "script"
[models.b]
upstream = "script"
[models.c]
upstream = "script"
"""


@pytest.mark.parametrize(
    ("query", "ids", "more"),
    [
        ("", ["a", "b", "c"], False),
        ("?limit=2", ["a", "b"], True),
        ("?limit=2&after_id=b", ["c"], False),
        ("?before_id=c&limit=1", ["b"], True),
        ("?after_id=c", [], False),
    ],
)
def test_the_list_of_models_is_paged_where_somebody_asks(
    query: str, ids: list[str], more: bool
) -> None:
    listed = _listed(query)
    assert [model["id"] for model in listed["data"]] == ids
    ends = (ids[0], ids[-1]) if ids else (None, None)
    assert (listed["has_more"], listed["first_id"], listed["last_id"]) == (more, *ends)
    for model in listed["data"]:
        assert (model["object"], model["type"], model["display_name"]) == (
            "model", "model", model["id"],
        )  # fmt: skip
        assert WHEN.fullmatch(model["created_at"])


@pytest.mark.parametrize("query", ["?limit=x", "?limit=0", "?after_id=nope", "?before_id=nope"])
def test_a_page_that_cannot_be_is_refused(query: str) -> None:
    assert _listed(query)["error"]["param"] in query


def _listed(query: str) -> Any:
    async def script() -> Any:
        async with running(THREE) as gateway:
            return (await gateway.get(f"/v1/models{query}"))[1]

    return asyncio.run(asyncio.wait_for(script(), 20))
