"""A gateway of two workers, in processes of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.paths import ROOT


@dataclass
class Fleet:
    config: Path
    url: str
    process: Process
    session: aiohttp.ClientSession
    said: list[str] = field(default_factory=list)
    """Lines of its stderr."""

    def workers(self) -> list[int]:
        pid = self.process.pid
        return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    async def chat(self, model: str, **more: Any) -> int:
        """Over a connection of its own, so that the workers take turns."""
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}], **more}
        url = f"{self.url}/v1/chat/completions"
        async with self.session.post(url, json=body) as answer:
            await answer.read()
            return answer.status

    async def get(self, path: str) -> Any:
        async with self.session.get(self.url + path) as answer:
            return await (answer.text() if path == "/metrics" else answer.json())

    async def counted(self) -> int:
        """Requests, as /metrics has them."""
        lines = (await self.get("/metrics")).splitlines()
        found = [one for one in lines if one.startswith("usetool_requests_total{")]
        return sum(int(float(one.rpartition(" ")[2])) for one in found)

    async def heard(self, words: str) -> None:
        async def said() -> bool:
            return any(words in line for line in self.said)

        await eventually(said)

    async def listen(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.said.append(line.decode())


async def eventually(true: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(1500):
        if await true():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not come true within 30 seconds")


@asynccontextmanager
async def fleet(folder: Path, text: str) -> AsyncIterator[Fleet]:
    path = folder / "config.toml"
    path.write_text(text)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "middleware", "serve", "--config", str(path)]
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--port", str(port)),
        cwd=ROOT,
        stderr=PIPE,
        env={**os.environ, "XDG_STATE_HOME": str(folder)},
    )
    connector = aiohttp.TCPConnector(force_close=True, limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        made = Fleet(path, f"http://127.0.0.1:{port}", process, session)
        listening = asyncio.create_task(made.listen())
        try:
            await made.heard("curl")

            async def all_serve() -> bool:
                return len(made.workers()) == 2

            await eventually(all_serve)
            yield made
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            await process.wait()
            await listening
