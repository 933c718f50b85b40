"""Server tools, recorded and played: without their modules and their config, and never run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson

from middleware.cassettes.replay.stage import Stage
from middleware.cassettes.routes import played_routes
from tests.cassette.core.desk import REPLAYED, cassette, desk, folded
from tests.support.day_one import Seen, answering, completion
from tests.support.upstreams.loopback import loopback

CONFIG = """
[upstreams.one]
kind = "compatible"
base_url = "ONE/v1"
api_key = "k"
[tools.here]
kind = "python"
module = "MODULE"
[models.m]
upstream = "one"
server_tools = ["here"]
"""
MODULE = '''
from pathlib import Path

def now(city: str) -> str:
    """The weather."""
    with Path(__file__).with_name("ran").open("a") as file:
        file.write(city)
    return f"sunny in {city}"
'''
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "now", "arguments": '{"city":"x"}'},
}


def calling() -> bytes:
    said = orjson.loads(completion(""))
    said["choices"][0]["message"] |= {"content": None, "tool_calls": [CALL]}
    said["choices"][0]["finish_reason"] = "tool_calls"
    return orjson.dumps(said)


def test_a_recorded_turn_is_played_without_its_tools(tmp_path: Path) -> None:
    module, ran = tmp_path / "weather.py", tmp_path / "ran"
    module.write_text(MODULE)
    answers = [calling(), completion("It is sunny.")]
    question = {"model": "m", "messages": [{"role": "user", "content": "what is it like?"}]}

    async def run() -> None:
        async with loopback(answering(Seen(), lambda *_: ("200 OK", answers.pop(0)))) as one:
            text = CONFIG.replace("ONE", one.url).replace("MODULE", str(module))
            async with desk(tmp_path, text, "record") as recording:
                tools = recording.door.app.chat.runtime.shared.tools
                assert tools is not None
                await tools.begin()
                (live,) = await recording.asks([question])
        assert live.json()["choices"][0]["message"]["content"] == "It is sunny."
        assert ran.read_text() == "x"
        module.unlink()
        (turn,) = cassette(tmp_path).turns
        assert [(one.name, one.content, one.failed) for one in turn.tools] == [
            ("now", "sunny in x", False)
        ]
        (declared,) = cassette(tmp_path).routes["m"]["server_tools"]
        assert declared["function"]["description"] == "The weather."
        async with desk(tmp_path, REPLAYED, "replay") as playing:
            (heard,) = await playing.asks([question])
        assert folded(heard) == folded(live)
        recorded = cassette(tmp_path)
        performance = await Stage(recorded, played_routes(recorded, "default")).performance(0)
        assert performance.drift == ()
        assert [run.tool for run in performance.journey.tools] == ["here.now"]
        assert ran.read_text() == "x"

    asyncio.run(run())
