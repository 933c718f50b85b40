"""Record the scenes again: upstreams on loopback, the gateway's own command, a child that asks."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from tests.replays.scenes import FOLDER, SCENES
from tests.support.paths import ROOT
from tests.support.upstreams.loopback import loopback


async def record(name: str, folder: Path = FOLDER) -> int:
    """Record one scene; the exit code of `usetool record`."""
    scene = SCENES[name]()
    async with AsyncExitStack() as stack:
        text = scene.config
        for upstream, behave in scene.upstreams.items():
            up = await stack.enter_async_context(loopback(behave))
            text = text.replace(f"{{{upstream}}}", up.url)
        config = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "config.toml"
        config.write_text(f'[recall]\nstore = "memory"\n{text}', "utf-8")
        said = ["--mode", "refresh", "--keep-errors", "--allow-live", "--config", str(config)]
        recording = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "middleware", "record", name, "--dir", str(folder), *said),
            *("--", sys.executable, "-m", "tests.replays.asks", name),
            cwd=ROOT,
        )
        return await recording.wait()


def main(names: Sequence[str]) -> int:
    return max([asyncio.run(record(name)) for name in names or SCENES])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
