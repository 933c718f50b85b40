"""One gateway, whatever process answers: real ones, on a port."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from tests.server.workers.gateway import Fleet, eventually, fleet
from tests.support.paths import ROOT
from tests.support.upstreams.loopback import Peer, loopback

ONE = '[server]\nworkers = 2\n[upstreams.u]\nkind = "scripted"\n[models.one]\nupstream = "u"\n'
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":%b}]}\n\n'

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


async def asked_of_all(here: Fleet) -> set[frozenset[str]]:
    """What eight connections, and so both workers, say of the last requests."""
    lists = [await here.get("/v1/x_usetool/last") for _ in range(8)]
    return {frozenset(one["id"] for one in found["data"]) for found in lists}


def test_what_one_worker_knows_all_tell(tmp_path: Path) -> None:
    async def run() -> None:
        async with fleet(tmp_path, ONE) as here:
            assert (await here.get("/readyz"))["workers"] == 2
            assert await asyncio.gather(*(here.chat("one") for _ in range(20))) == [200] * 20
            (ids,) = await asked_of_all(here)
            assert len(ids) == 20
            for one in sorted(ids)[:4]:
                assert (await here.get(f"/v1/x_usetool/last/{one}"))["model"] == "one"
            assert {await here.counted() for _ in range(6)} == {20}
            await one_dies(here)
            await file_changes(here)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("loaded", "absent"),
    [
        ("server.transport.serving", "server.workers machine.hub machine.channel machine.remote"),
        ("server.workers.supervisor", "fastapi aiohttp middleware.server.app"),
    ],
)
def test_a_process_loads_what_it_is_for(loaded: str, absent: str) -> None:
    """One that serves alone nothing of several; one above several nothing that serves."""
    program = f"import sys, middleware.{loaded}\nprint(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not [name for name in found.stdout.split() if name.endswith(tuple(absent.split()))]


async def one_dies(here: Fleet) -> None:
    before = here.workers()
    os.kill(before[1], signal.SIGKILL)
    await here.heard("another takes its place")
    assert await asyncio.gather(*(here.chat("one") for _ in range(6))) == [200] * 6

    async def replaced() -> bool:
        return len(set(here.workers()) - set(before)) == 1

    await eventually(replaced)
    assert await here.counted() >= 26
    (ids,) = await asked_of_all(here)
    assert len(ids) >= 6


async def file_changes(here: Fleet) -> None:
    text = f'[state]\nurl = "sqlite:///elsewhere.sqlite3"\n{ONE}'
    here.config.write_text(text.replace("models.one", "models.two"))

    async def served() -> bool:
        return set(await asyncio.gather(*(here.chat("two") for _ in range(8)))) == {200}

    await eventually(served)
    assert await asyncio.gather(*(here.chat("one") for _ in range(4))) == [404] * 4
    assert len([line for line in here.said if "what [state] says now takes a restart" in line]) == 1
    assert len([line for line in here.said if "loaded again" in line]) == 1


def test_streams_end_whole_and_nobody_is_left(tmp_path: Path) -> None:
    go = asyncio.Event()

    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.start("content-type: text/event-stream")
        await peer.chunk(CHUNK % (b"before", b"null"))
        await go.wait()
        await peer.chunk(CHUNK % (b" after", b'"stop"') + b"data: [DONE]\n\n")
        await peer.chunk(b"")

    async def stream(here: Fleet, begun: asyncio.Semaphore) -> bytes:
        body = {"model": "slow", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        async with here.session.post(f"{here.url}/v1/chat/completions", json=body) as answer:
            first = await answer.content.readuntil(b"before")
            begun.release()
            return first + await answer.content.read()

    async def run() -> None:
        async with loopback(behave) as up:
            text = f'{ONE}[upstreams.up]\nkind = "compatible"\nbase_url = "{up.url}/v1"\n'
            text += '[models.slow]\nupstream = "up"\n'
            async with fleet(tmp_path, text) as here:
                begun = asyncio.Semaphore(0)
                streams = [asyncio.create_task(stream(here, begun)) for _ in range(6)]
                for _ in streams:
                    await begun.acquire()
                workers = here.workers()
                for end in (signal.SIGINT, *[signal.SIGTERM] * 5):
                    here.process.send_signal(end)
                await here.heard("stopping")
                with pytest.raises(aiohttp.ClientConnectionError):
                    await here.chat("one")
                go.set()
                for whole in await asyncio.gather(*streams):
                    assert b" after" in whole
                    assert whole.endswith(b"data: [DONE]\n\n")
                await here.process.wait()
                assert all(map(gone, workers))
                assert len([line for line in here.said if "stopping" in line]) == 1

    asyncio.run(run())


def test_workers_do_not_outlive_who_is_above_them(tmp_path: Path) -> None:
    async def run() -> None:
        async with fleet(tmp_path, ONE) as here:
            assert await here.chat("one") == 200
            workers = here.workers()
            here.process.kill()

            async def all_gone() -> bool:
                return all(map(gone, workers))

            await eventually(all_gone)

    asyncio.run(run())


def test_a_second_port_is_served_by_the_same_workers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    async def run() -> None:
        text = ONE.replace("workers = 2", f"workers = 2\nollama_port = {port}")
        async with fleet(tmp_path, text) as here:
            for _ in range(4):
                url = f"http://127.0.0.1:{port}/api/tags"
                async with here.session.get(url) as answer:
                    assert [one["name"] for one in (await answer.json())["models"]] == ["one"]
            assert await here.chat("one") == 200

    asyncio.run(asyncio.wait_for(run(), 60))
