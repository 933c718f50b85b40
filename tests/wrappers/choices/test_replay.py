"""Models of choices, recorded and played: who answered then answers again, and nobody is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from middleware.cassettes.verify import Verified, verified
from tests.cassette.core.desk import REPLAYED, cassette, desk, folded
from tests.support.day_one import Seen, answering, completion
from tests.support.upstreams.loopback import loopback

MODELS = """
[upstreams.one]
kind = "compatible"
base_url = "ONE/v1"
api_key = "k"
[upstreams.two]
kind = "compatible"
base_url = "TWO/v1"
api_key = ["k", "l"]
[models.first]
upstream = "one"
name = "one-1"
[models.second]
upstream = "two"
name = "two-1"
[models.smart]
choices = ["first", "second"]
pick = "weight"
defaults = { temperature = 0.5 }
[models.guarded]
upstream = "one"
name = "one-2"
fallback = ["second"]
"""
LIMITED = ("429 Too Many Requests", b'{"error": {"message": "slow down"}}')
OFF = ("503 Service Unavailable", b'{"error": {"message": "off"}}')


@pytest.mark.parametrize("model", ["smart", "guarded"])
@pytest.mark.parametrize("fails", [OFF, LIMITED])
def test_who_answered_then_answers_again(
    tmp_path: Path, model: str, fails: tuple[str, bytes]
) -> None:
    questions = [
        {"model": model, "messages": [{"role": "user", "content": f"question {number}"}]}
        for number in range(3)
    ]
    second = ("200 OK", completion("from the second"))

    async def run() -> None:
        async with (
            loopback(answering(Seen(), lambda *_: fails)) as one,
            loopback(answering(Seen(), lambda *_: second)) as two,
        ):
            text = MODELS.replace("ONE", one.url).replace("TWO", two.url)
            async with desk(tmp_path, text, "record") as recording:
                live = [folded(heard) for heard in await recording.asks(questions)]
        routes = cassette(tmp_path).routes
        assert {"first", "second"} & routes.keys()
        async with desk(tmp_path, REPLAYED, "replay") as playing:
            heard = await playing.asks(questions)
        assert [folded(one) for one in heard] == live
        for each in heard:
            assert each.headers["x-usetool-model"] == "second"
            assert each.headers["x-usetool-route"].endswith("second=ok")

    asyncio.run(run())


def test_who_rested_then_is_not_asked(tmp_path: Path) -> None:
    refused = ("401 Unauthorized", b'{"error": {"message": "no such key"}}')

    async def run() -> Verified:
        async with loopback(answering(Seen(), lambda *_: refused)) as up:
            text = MODELS.replace("ONE", up.url).replace("TWO", up.url)
            async with desk(tmp_path, text, "record") as recording:
                for number in range(2):
                    said = [{"role": "user", "content": f"question {number}"}]
                    await recording.ask({"model": "guarded", "messages": said})
        recorded = cassette(tmp_path)
        assert [len(turn.exchanges) for turn in recorded.turns] == [3, 1]
        return await verified(recorded, "it")

    assert [one for one in asyncio.run(run()).drift if one.turn == 2] == []
