"""A changed config serves new requests; a broken one is told, and the old one stays."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from middleware import config
from middleware.server.reloading import Reloader
from middleware.wrappers.recall import MemoryStore
from tests.support.day_one import Json, Running, running
from tests.support.paths import ROOT
from tests.support.upstreams.loopback import Peer, loopback

ONE = '[upstreams.demo]\nkind = "scripted"\n[models.one]\nupstream = "demo"\n'
TWO = ONE.replace("models.one", "models.two")
BROKEN = ONE.replace("kind", "knid")
QUICK = 0.01


def hello(model: str) -> Json:
    return {"model": model, "messages": [{"role": "user", "content": "hi"}]}


@asynccontextmanager
async def watched(
    gateway: Running, path: Path, said: list[str]
) -> AsyncIterator[asyncio.Task[None]]:
    reloader = Reloader(gateway.app, path, lambda: config.load(path), said.append, QUICK)
    task = asyncio.create_task(reloader.watch())
    await asyncio.sleep(0)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def told(said: list[str], count: int = 1) -> str:
    for _ in range(500):
        if len(said) >= count:
            break
        await asyncio.sleep(QUICK)
    return said[count - 1]


def test_new_requests_are_served_by_the_changed_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"

    async def run() -> None:
        said: list[str] = []
        path.write_text(ONE)
        async with running(ONE) as gateway, watched(gateway, path, said):
            assert (await gateway.chat(hello("two")))[0] == 404
            path.write_text(TWO)
            assert "loaded again; 1 of 1 models" in await told(said)
            assert (await gateway.chat(hello("two")))[0] == 200
            assert (await gateway.chat(hello("one")))[0] == 404

    asyncio.run(run())


def test_hosts_change_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"

    async def run() -> None:
        said: list[str] = []
        path.write_text(ONE)
        async with running(ONE) as gateway, watched(gateway, path, said):
            assert (await gateway.get("/healthz", host="gateway.test"))[0] == 403
            path.write_text(f'[server]\nhosts = ["gateway.test"]\n{ONE}')
            await told(said)
            assert (await gateway.get("/healthz", host="gateway.test"))[0] == 200

    asyncio.run(run())


def test_a_file_put_in_the_place_of_the_other_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"

    async def run() -> None:
        said: list[str] = []
        path.write_text(ONE)
        async with running(ONE) as gateway, watched(gateway, path, said):
            path.unlink()
            await asyncio.sleep(5 * QUICK)
            assert said == []
            (tmp_path / "next").write_text(TWO)
            (tmp_path / "next").rename(path)
            await told(said)
            assert (await gateway.chat(hello("two")))[0] == 200

    asyncio.run(run())


def test_a_broken_file_is_told_with_its_mistakes_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"

    async def run() -> None:
        said: list[str] = []
        path.write_text(ONE)
        async with running(ONE) as gateway, watched(gateway, path, said):
            path.write_text(BROKEN)
            words = await told(said)
            assert "upstreams.demo.knid: is no key here. Did you mean 'kind'?" in words
            assert "what was served before still is" in words
            assert (await gateway.chat(hello("one")))[0] == 200
            path.write_text(TWO)
            await told(said, 2)
            assert (await gateway.chat(hello("two")))[0] == 200

    asyncio.run(run())


ODD = [
    ONE + 'name = "~x"\npath = "~nobody-of-that-name/x"',
    ONE + "path = 5",
    ONE + f"max_tokens = {'9' * 5000}",
    ONE + f"path = {'[' * 3000}",
    "\0",
]


def test_whatever_a_file_holds_a_removed_key_opens_no_more(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"

    async def run() -> None:
        said: list[str] = []
        keys = '[server]\nkeys = ["old", "new"]\n' + ONE
        path.write_text(keys)
        async with running(keys) as gateway, watched(gateway, path, said) as task:
            for count, text in enumerate(ODD, 1):
                path.write_text(text)
                assert "what was served before still is" in await told(said, count)
                assert (await gateway.chat(hello("one"), "old"))[0] == 200
            path.write_text(keys.replace('"old", ', ""))
            assert "loaded again" in await told(said, len(ODD) + 1)
            assert (await gateway.chat(hello("one"), "old"))[0] == 401
            assert (await gateway.chat(hello("one"), "new"))[0] == 200
            assert not task.done()

    asyncio.run(run())


@pytest.mark.parametrize(
    "failure", [RuntimeError, RecursionError, MemoryError, ValueError, OSError]
)
def test_the_watcher_outlives_whatever_reading_raises(
    tmp_path: Path, failure: type[Exception]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(ONE)

    def load() -> config.Config:
        if path.read_text() == BROKEN:
            raise failure("nobody thought of this")
        return config.load(path)

    async def run() -> None:
        said: list[str] = []
        async with running(ONE) as gateway:
            reloader = Reloader(gateway.app, path, load, said.append, QUICK)
            task = asyncio.create_task(reloader.watch())
            await asyncio.sleep(0)
            path.write_text(BROKEN)
            words = await told(said)
            assert f"not loaded ({failure.__name__}: nobody thought of this)" in words
            assert (await gateway.chat(hello("one")))[0] == 200
            path.write_text(TWO)
            await told(said, 2)
            assert (await gateway.chat(hello("two")))[0] == 200
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_the_watcher_outlives_a_terminal_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(ONE)

    def say(_: str) -> None:
        raise BrokenPipeError

    async def run() -> None:
        async with running(ONE) as gateway:
            task = asyncio.create_task(
                Reloader(gateway.app, path, lambda: config.load(path), say, QUICK).watch()
            )
            await asyncio.sleep(0)
            for text, name in ((BROKEN, "one"), (TWO, "two"), (ONE, "one")):
                path.write_text(text)
                for _ in range(200):
                    await asyncio.sleep(QUICK)
                    if (await gateway.chat(hello(name)))[0] == 200:
                        break
                assert (await gateway.chat(hello(name)))[0] == 200
            assert not task.done()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_a_change_while_the_gateway_starts_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(ONE)

    async def run() -> None:
        said: list[str] = []
        async with running(ONE) as gateway:
            gateway.app.use(gateway.app.prepare(config.load(path)))
            path.write_text(TWO)
            async with watched(gateway, path, said):
                assert "loaded again" in await told(said)
                assert (await gateway.chat(hello("two")))[0] == 200

    asyncio.run(run())


def test_a_stream_that_runs_is_finished_by_what_began_it(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    go = asyncio.Event()
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":%b}]}\n\n'

    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.start("content-type: text/event-stream")
        await peer.chunk(chunk % (b"before", b"null"))
        await go.wait()
        await peer.chunk(chunk % (b" after", b'"stop"') + b"data: [DONE]\n\n")
        await peer.chunk(b"")

    async def run() -> None:
        said: list[str] = []
        async with loopback(behave) as up:
            text = f'[upstreams.up]\nkind = "compatible"\nbase_url = "{up.url}/v1"\n'
            text += '[models.slow]\nupstream = "up"\n'
            path.write_text(text)
            async with running(text) as gateway, watched(gateway, path, said):
                body = {**hello("slow"), "stream": True}
                url = f"{gateway.url}/v1/chat/completions"
                async with gateway.session.post(url, json=body) as answer:
                    first = await answer.content.readuntil(b"\n\n")
                    path.write_text(TWO)
                    await told(said)
                    assert (await gateway.chat(hello("slow")))[0] == 404
                    go.set()
                    rest = await answer.content.read()
                assert b"before" in first + rest
                assert b" after" in rest
                assert rest.endswith(b"data: [DONE]\n\n")

    asyncio.run(run())


def test_keys_origins_and_what_is_kept_change_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"

    async def run() -> None:
        said: list[str] = []
        path.write_text(ONE)
        async with running(ONE) as gateway, watched(gateway, path, said):
            path.write_text(
                f'[server]\nkeys = ["k"]\nkeep_last = 1\ncors_origins = ["https://a.test"]\n{ONE}'
            )
            await told(said)
            assert (await gateway.chat(hello("one")))[0] == 401
            assert (await gateway.chat(hello("one"), "k"))[0] == 200
            _, listed = await gateway.get("/v1/x_usetool/last", "k")
            assert [one["status"] for one in listed["data"]] == [200, 401]
            assert listed["keep_last"] == 1
            url = f"{gateway.url}/v1/models"
            origin = {"origin": "https://a.test"}
            async with gateway.session.get(url, headers=origin) as answer:
                assert answer.headers["access-control-allow-origin"] == "https://a.test"

    asyncio.run(run())


@pytest.mark.parametrize(("after", "kept"), [("", True), ("max_age = 60", False)])
def test_memories_outlive_a_change_that_is_not_theirs(after: str, kept: bool) -> None:
    async def run() -> None:
        async with running(ONE) as gateway:
            recall = '[recall]\nstore = "memory"\n'
            first = gateway.app.prepare(config.parse(recall + ONE, environment={}))
            gateway.app.use(first)
            changed = config.parse(f"{recall}{after}\n{TWO}", environment={})
            second = gateway.app.prepare(changed)
            assert isinstance(second.routes.store, MemoryStore)
            assert (second.routes.store is first.routes.store) == kept

    asyncio.run(run())


def test_what_takes_a_restart_is_told_once_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"

    async def run() -> None:
        said: list[str] = []
        path.write_text(ONE)
        async with running(ONE) as gateway, watched(gateway, path, said):
            before = (one := gateway.app.chat.runtime.config).state, one.recall
            changed = '[server]\nworkers = 3\nollama_port = 1\n[state]\nurl = "redis://x.test"\n'
            path.write_text(f"{changed}{TWO}")
            words = "what [recall], [state], ollama_port, workers says now takes a restart"
            assert words in await told(said)
            path.write_text(f"{changed}{ONE}")
            assert "another host or port takes a restart" in await told(said, 2)
            after = gateway.app.chat.runtime.config
            assert (after.state, after.recall, after.server.workers) == (*before, 1)

    asyncio.run(run())


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no SIGHUP")
def test_sighup_loads_again_on_the_address_that_is_listened_on(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(ONE)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "middleware", "serve", "--config", str(path), "--port", port]
    own = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=own) as server:
        assert server.stderr is not None
        try:
            while "curl" not in server.stderr.readline():
                pass
            # Same size and time: only the signal tells.
            found = path.stat()
            path.write_text(ONE.replace("models.one", "models.won"))
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
            server.send_signal(signal.SIGHUP)
            assert f"127.0.0.1:{port}" in server.stderr.readline()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5) as answer:
                assert b'"won"' in answer.read()
        finally:
            server.terminate()
            server.wait(60)
