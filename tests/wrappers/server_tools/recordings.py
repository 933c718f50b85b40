"""A gateway with server tools that is recorded, and played without their module and config."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from adapters.protocol import Json
from middleware.cassettes.cassette import Cassette
from middleware.cassettes.replay.performance import Performance
from middleware.cassettes.replay.stage import Stage
from middleware.cassettes.routes import played_routes
from middleware.server.app import Gateway
from tests.cassette.core.desk import REPLAYED, Desk, cassette, desk
from tests.support.day_one import Seen
from tests.support.door import Heard
from tests.support.upstreams.loopback import Behaviour, Peer, loopback

CONFIG = """
[recall]
store = "memory"
[upstreams.one]
kind = "compatible"
base_url = "ONE/v1"
api_key = "k"
[tools.here]
kind = "python"
module = "MODULE"
max_result = 100
[models.m]
upstream = "one"
server_tools = ["here"]
[models.steps]
upstream = "one"
server_tools = ["here"]
steps = true
[models.told]
upstream = "one"
server_tools = ["here"]
steps = "reasoning"
[models.taken]
upstream = "one"
takeover = ["now", "nothing_here"]
[models.bare]
upstream = "one"
[models.either]
choices = ["bare", "other"]
server_tools = ["here.now"]
[models.other]
upstream = "one"
name = "other"
[models.pipe]
pipeline = "reason-then-answer"
reasoner = "bare"
answerer = "other"
server_tools = ["here.now"]
max_rounds = 2
"""
MODULE = '''
import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

def now(city: str) -> str:
    """The weather."""
    with Path(__file__).with_name("ran").open("a") as file:
        file.write(f"now {city}\\n")
    return f"sunny in {city}"

async def later() -> str:
    await asyncio.sleep(0.05)
    return "late"

def long() -> str:
    return "x" * 5000

async def pieces() -> AsyncIterator[str]:
    for word in ("one ", "two"):
        yield word
        await asyncio.sleep(0)
'''


def call(identity: str, name: str, **arguments: Any) -> Json:
    function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
    return {"id": identity, "type": "function", "function": function}


def says(text: str | None, *calls: Json) -> Json:
    """A message of the model."""
    return {"role": "assistant", "content": text, **({"tool_calls": [*calls]} if calls else {})}


def answering_as(said: list[Json], seen: Seen) -> Behaviour:
    """An upstream that says these messages, one an ask, streamed or not."""

    async def behave(peer: Peer) -> None:
        while True:
            head, raw = await peer.request()
            body = orjson.loads(raw)
            seen.requests.append((head.split(" ")[1], head, body))
            message = said.pop(0)
            if not body.get("stream"):
                await peer.answer(orjson.dumps(_whole(message)), "content-type: application/json")
                continue
            await peer.start("content-type: text/event-stream")
            for chunk in (*_chunks(message), None):
                data = b"[DONE]" if chunk is None else orjson.dumps(chunk)
                await peer.chunk(b"data: " + data + b"\n\n")
            await peer.chunk(b"")

    return behave


def _reason(message: Json) -> str:
    return "tool_calls" if "tool_calls" in message else "stop"


def _whole(message: Json) -> Json:
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    choice = {"index": 0, "message": message, "finish_reason": _reason(message)}
    return {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}


def _chunks(message: Json) -> Iterator[Json]:
    deltas: list[Json] = [{"role": "assistant", "content": message["content"]}]
    for index, one in enumerate(message.get("tool_calls", ())):
        deltas.append({"tool_calls": [{"index": index, **one}]})
    for delta in deltas:
        yield _chunk(delta, None)
    yield _chunk({}, _reason(message))


def _chunk(delta: Json, reason: str | None) -> Json:
    choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
    return {"id": "c", "object": "chat.completion.chunk", "choices": choices}


class Recorded:
    """What was heard live, what was heard of the cassette, and the cassette."""

    def __init__(self, folder: Path, said: Sequence[Json], asks: Sequence[Json]) -> None:
        self.folder = folder
        self.said = [*said]
        self.asks = asks
        self.seen = Seen()
        self.live: list[Heard] = []
        self.played: list[Heard] = []
        self.module = folder / "weather.py"

    @property
    def ran(self) -> list[str]:
        file = self.folder / "ran"
        return file.read_text().split("\n")[:-1] if file.exists() else []

    def cassette(self) -> Cassette:
        return cassette(self.folder)

    def config(self, url: str) -> str:
        return CONFIG.replace("ONE", url).replace("MODULE", str(self.module))

    async def record(self) -> None:
        self.module.write_text(MODULE)
        async with (
            loopback(answering_as(self.said, self.seen)) as one,
            desk(self.folder, self.config(one.url), "record") as recording,
        ):
            await begin_tools(recording.door.app)
            self.live = await recording.asks(self.asks)
        self.module.unlink()

    async def play(self) -> None:
        async with desk(self.folder, REPLAYED, "replay") as playing:
            self.played = await self.asks_of(playing)

    async def asks_of(self, playing: Desk) -> list[Heard]:
        return await playing.asks(self.asks)

    async def performances(self) -> list[Performance]:
        recorded = self.cassette()
        stage = Stage(recorded, played_routes(recorded, "default"))
        return [await stage.performance(at) for at in range(len(recorded.turns))]


async def begin_tools(app: Gateway) -> None:
    tools = app.chat.runtime.shared.tools
    assert tools is not None
    await tools.begin()


def recorded(folder: Path, said: Sequence[Json], *asks: Json) -> Recorded:
    """Record and play; the played answers are the live ones, byte for byte, and nothing drifts."""
    found = Recorded(folder, said, asks)

    async def go() -> None:
        await found.record()
        assert found.said == []
        before = found.ran
        await found.play()
        for live, played in zip(found.live, found.played, strict=True):
            assert (played.status, played.body) == (live.status, live.body)
            assert "drift" not in played.headers["x-usetool-replay"]
            for name in ("x-usetool-warnings", "x-usetool-usage"):
                assert played.headers.get(name) == live.headers.get(name)
        assert [one.drift for one in await found.performances()] == [()] * len(asks)
        assert found.ran == before

    asyncio.run(go())
    return found
