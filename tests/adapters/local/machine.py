"""The embedded model's process under a script, as its tests share it."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from adapters.local import Local
from adapters.local.child import Child
from adapters.local.engine import Engine
from adapters.local.files import Model
from adapters.local.keeper import Keeper
from adapters.protocol import ChatRequest
from adapters.wire.http import Link, Transport
from tests.support.dialogue import user
from tests.support.fold import Answer, fold
from tests.support.paths import ROOT

SCRIPT = ROOT / "tests/support/upstreams/llama_script.py"


def ask(do: str = "answer") -> ChatRequest:
    return ChatRequest("local", (user(do),))


class Machine:
    """A local model whose process does as it is told; its processes are kept."""

    def __init__(self, folder: Path, loading: str = "", silent: float = 60) -> None:
        file = folder / "small.gguf"
        file.write_text(loading, "utf-8")
        self.model = Model(str(file))
        self.children: list[Child] = []
        keeper = Keeper(self.model, self._start, silent)
        link = Link("local", "", Transport())
        self.local = Local(link, self.model, Engine(keeper.answer))

    def _start(self, command: Sequence[str]) -> Child:
        python, *_, parent, said = command
        self.children.append(Child((python, "-P", str(SCRIPT), parent, said)))
        return self.children[-1]

    async def says(self, do: str = "answer") -> Answer:
        return await fold(self.local.stream(ask(do)))

    async def leaves(self, do: str, after: float) -> None:
        """Ask, and close the connection a moment later."""
        asked = asyncio.create_task(self.says(do))
        await asyncio.sleep(after)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)


def gone(pid: int) -> bool:
    """Whether a process has ended, even if nobody has asked how."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return not state.strip() or state.startswith("Z")


def until(reached: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not reached() and time.monotonic() < end:
        time.sleep(0.02)
    return reached()
