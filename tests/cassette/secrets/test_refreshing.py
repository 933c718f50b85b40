"""What is asked again is searched for secrets twice, as what is recorded."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from middleware import config
from middleware.cassettes.cassette import Cassette
from middleware.cassettes.errors import CassetteRefused
from middleware.cassettes.file import read_cassette
from middleware.cassettes.record.again import ask_again
from tests.cassette.core.desk import asking, desk
from tests.support.upstreams.loopback import Peer, loopback

KEY = "sk-proj-Abc123Def456Ghi789Jkl"


async def says_its_key(peer: Peer) -> None:
    """In the log probabilities, where no text is looked at for what it says."""
    while True:
        await peer.request()
        token = {"token": KEY, "logprob": -0.1, "bytes": None, "top_logprobs": []}
        message = {"role": "assistant", "content": "hello"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"model": "m", "choices": [{**choice, "logprobs": {"content": [token]}}]}
        await peer.answer(orjson.dumps(answer), "content-type: application/json")


def asked_again(folder: Path, rule: str = "") -> tuple[Cassette, Cassette]:
    """A recording, and what comes of it when it is asked again; `rule` stands in its file."""

    async def go() -> tuple[Cassette, Cassette]:
        async with loopback(says_its_key) as up:
            text = f"""
[upstreams.up]
kind = "compatible"
base_url = "{up.url}"
api_key = "{KEY}"
[models.m]
upstream = "up"
"""
            async with desk(folder, text, "record") as gateway:
                await gateway.ask({**asking("hi"), "logprobs": True})
            old = read_cassette(folder / "default.yaml")
            if rule:
                old = replace(old, diff={"ignore": [rule]})
            return old, await ask_again(config.parse(text, environment={}), old)

    return asyncio.run(go())


def test_a_key_in_log_probabilities_is_taken_out_each_time(tmp_path: Path) -> None:
    old, again = asked_again(tmp_path)
    assert KEY not in repr(old)
    assert KEY not in repr(again)
    assert again.turns[0].answer.logprobs == old.turns[0].answer.logprobs is not None


def test_what_still_holds_a_secret_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(CassetteRefused, match="in clear"):
        asked_again(tmp_path, rule=KEY)
