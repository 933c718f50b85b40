"""What is loaded: nothing of cassettes where there are none, no library where some are played."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from adapters.protocol import Json
from tests.cassette.core.test_kinds import LIBRARY_ASKS, recorded_of_a_library
from tests.support.paths import ROOT

OFF = """
import asyncio, sys
from tests.support.door import door

async def go():
    gateway = door()
    heard = [await gateway.chat("demo"), await gateway.chat("demo", stream=True)]
    assert [one.status for one in heard] == [200, 200]

asyncio.run(go())
print(*sorted(name for name in sys.modules if name.startswith(("middleware.cassettes", "yaml"))))
"""
REPLAYED = """
import asyncio, json, sys
from pathlib import Path
from tests.cassette.core.desk import REPLAYED, desk

async def go(folder, body):
    async with desk(Path(folder), REPLAYED, "replay") as gateway:
        heard = await gateway.ask(body)
        assert heard.headers["x-usetool-replay"] == "default turn=1 of=1", heard.sent

for folder, body in json.loads(sys.argv[1]):
    asyncio.run(go(folder, body))
print(*sorted({"litellm", "openai", "xllamacpp", "llm"} & sys.modules.keys()))
"""


def printed(program: str, *arguments: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def test_a_gateway_without_cassettes_loads_next_to_nothing_of_them() -> None:
    small = ("", ".cassette", ".errors", ".names", ".selection", ".visitor")
    assert {*printed(OFF)} <= {f"middleware.cassettes{name}" for name in small}


def test_what_libraries_said_is_played_without_loading_one(tmp_path: Path) -> None:
    recorded: list[tuple[str, Json]] = []
    for at, ask in enumerate(LIBRARY_ASKS):
        folder = tmp_path / str(at)
        asyncio.run(recorded_of_a_library(folder, ask))
        recorded.append((str(folder), ask.body))
    assert printed(REPLAYED, json.dumps(recorded)) == []
