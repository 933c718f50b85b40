"""Turns of several questions: emulated tools, pipelines that search, embeddings, retries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from adapters.longtail import Library, Longtail
from adapters.protocol import Json
from adapters.wire.http import Link, Transport
from middleware.cassettes.cassette import CassetteTurn
from tests.adapters.test_longtail import Failure, Model
from tests.cassette.core.desk import (
    REPLAYED,
    Desk,
    asking,
    cassette,
    desk,
    folded,
    pieces,
    streamed,
)
from tests.support.day_one import Seen, answering, completion
from tests.support.door import Heard
from tests.support.text_only import BAD, OSLO, TOOLS
from tests.support.upstreams.loopback import loopback

EMBEDDINGS = "/v1/embeddings"
MODELS = """
[upstreams.up]
kind = "compatible"
base_url = "URL/v1"
api_key = "k"
[models.plain]
upstream = "up"
name = "up-1"
retry = 0
[models.toy]
upstream = "up"
name = "up-2"
tools = "emulated"
retry = 0
[models.often]
upstream = "up"
name = "up-3"
[upstreams.tavily]
kind = "tavily"
base_url = "URL"
api_key = "t"
[models.both]
pipeline = "reason-then-answer"
reasoner = "plain"
answerer = "toy"
search = "tavily"
search_when = "always"
[upstreams.near]
kind = "ollama"
base_url = "URL"
[models.vectors]
upstream = "near"
name = "emb"
"""
FOUND = {"results": [{"title": "Sky", "url": "http://sky.test", "content": "sunny", "score": 1}]}
Reply = tuple[str, bytes]


class Upstream:
    """Says its completions one after the other, and always the same to small questions."""

    def __init__(self, *says: str | int) -> None:
        self.says = list(says)
        self.search = "200 OK"
        self.seen = Seen()

    def reply(self, path: str, _: str, body: Json) -> Reply:
        if path == "/search":
            return self.search, orjson.dumps(FOUND)
        if path == "/api/embed":
            count = len(body["input"])
            vectors = {"embeddings": [[0.5, -1.0]] * count, "prompt_eval_count": 4}
            return "200 OK", orjson.dumps(vectors)
        if path.startswith("/api"):
            return "200 OK", orjson.dumps({"capabilities": ["embedding"], "model_info": {}})
        if path == "/v1/embeddings":
            data = [{"object": "embedding", "index": 0, "embedding": [0.25]}]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            return "200 OK", orjson.dumps({"object": "list", "data": data, "usage": usage})
        next_one = self.says.pop(0)
        if isinstance(next_one, int):
            return f"{next_one} Failed", orjson.dumps({"error": {"message": "no", "type": "t"}})
        return "200 OK", completion(next_one)


async def ask_all(gateway: Desk, asks: Sequence[tuple[str, Json]]) -> list[Heard]:
    return [
        await (gateway.ask(body) if path == "chat" else gateway.post(path, body))
        for path, body in asks
    ]


def round_trip(
    folder: Path, upstream: Upstream, *asks: tuple[str, Json], **options: Any
) -> tuple[list[Heard], list[Heard]]:
    """Record, then play."""

    async def go() -> tuple[list[Heard], list[Heard]]:
        async with loopback(answering(upstream.seen, upstream.reply)) as up:
            text = MODELS.replace("URL", up.url)
            async with desk(folder, text, "record", **options) as recording:
                live = await ask_all(recording, asks)
        async with desk(folder, REPLAYED, "replay") as playing:
            return live, await ask_all(playing, asks)

    return asyncio.run(go())


def turns(folder: Path) -> tuple[CassetteTurn, ...]:
    return cassette(folder).turns


def same(live: Sequence[Heard], again: Sequence[Heard]) -> None:
    for one, other in zip(live, again, strict=True):
        assert other.status == one.status
        assert pieces(other) == pieces(one)
        assert " drift=" not in other.headers["x-usetool-replay"]


WEATHER = asking("Weather in Oslo?", "toy", tools=list(TOOLS))


def test_emulated_tools_ask_again_and_play_both_questions(tmp_path: Path) -> None:
    live, again = round_trip(tmp_path, Upstream(BAD, OSLO), ("chat", WEATHER))
    same(live, again)
    (turn,) = turns(tmp_path)
    assert len(turn.exchanges) == 2
    (call,) = folded(again[0])["tool_calls"]
    assert orjson.loads(call["function"]["arguments"]) == {"city": "Oslo"}


def test_a_pipeline_plays_its_search_its_thought_and_its_answer(tmp_path: Path) -> None:
    upstream = Upstream("I think of the sky.", "It is blue.", "Again.", "It is still blue.")
    body = asking("Which colour has the sky?", "both")
    live, again = round_trip(tmp_path, upstream, ("chat", body), ("chat", streamed(body)))
    same(live, again)
    assert folded(again[0])["content"] == "It is blue."
    first, _ = turns(tmp_path)
    assert [one.upstream for one in first.exchanges] == ["up", "up"]
    found = cassette(tmp_path)
    assert {"/search"} == {fact["path"] for fact in found.facts}
    assert found.routes.keys() == {"both", "plain", "toy", "tavily"}
    sunny = [body for body in upstream.seen.bodies("/v1/chat/completions") if "sunny" in str(body)]
    assert sunny, "what was found reaches the reasoner"


def test_a_search_that_failed_fails_again(tmp_path: Path) -> None:
    upstream = Upstream("I think of the sky.", "It is blue.")
    upstream.search = "500 No Search"
    live, again = round_trip(tmp_path, upstream, ("chat", streamed(asking("Sky?", "both"))))
    same(live, again)
    assert again[0].headers["x-usetool-warnings"] == live[0].headers["x-usetool-warnings"]


@pytest.mark.parametrize(("model", "input"), [("plain", "one"), ("vectors", ["one", "two"])])
def test_vectors_are_played(tmp_path: Path, model: str, input: Any) -> None:
    asked = {"model": model, "input": input}
    live, again = round_trip(tmp_path, Upstream(), (EMBEDDINGS, asked), (EMBEDDINGS, asked))
    assert live[0].status == 200
    same(live, again)


def test_vectors_of_a_library_are_played_without_it(tmp_path: Path) -> None:
    vectors: Json = {"object": "list", "model": "far", "usage": {"prompt_tokens": 1}}
    vectors["data"] = [{"object": "embedding", "index": 0, "embedding": [1.0]}]

    async def embed(**_: Any) -> Any:
        return Model(vectors)

    library = Library(embed, embed, lambda model: None, (Failure,))
    text = '[upstreams.tail]\nkind = "longtail"\n[models.far]\nupstream = "tail"\nname = "f"\n'

    async def go() -> tuple[Heard, Heard]:
        asked = {"model": "far", "input": "one"}
        async with desk(tmp_path, MODELS.replace("URL", "http://up.test"), "record") as recording:
            leaf = Longtail(Link("tail", "", Transport()), library)
            recording.put({"far": leaf}, text)
            live = await recording.post(EMBEDDINGS, asked)
        async with desk(tmp_path, REPLAYED, "replay") as playing:
            return live, await playing.post(EMBEDDINGS, asked)

    live, again = asyncio.run(go())
    assert live.json()["data"] == vectors["data"]
    same([live], [again])


@pytest.mark.parametrize("keeps", [False, True])
def test_what_asking_again_repaired_is_kept_only_if_asked_for(tmp_path: Path, keeps: bool) -> None:
    upstream = Upstream(500, "At last.")
    live, again = round_trip(
        tmp_path, upstream, ("chat", asking("hi", "often")), keep_retries=keeps
    )
    same(live, again)
    (turn,) = turns(tmp_path)
    assert [one.status for one in turn.exchanges] == ([500, 200] if keeps else [200])
    assert turn.is_whole


def test_what_asking_again_did_not_repair_is_kept_and_played_at_once(tmp_path: Path) -> None:
    upstream = Upstream(500, 500, 500, 500, 500)
    live, again = round_trip(tmp_path, upstream, ("chat", asking("hi", "often")))
    same(live, again)
    assert again[0].status == 500
    (turn,) = turns(tmp_path)
    assert len(turn.exchanges) == len(upstream.seen.requests) > 1
