"""`usetool check --live` behind a proxy and at a relay: prints the lines they need."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.cli.probing import KEY
from tests.support.day_one import Json, Reply, Seen, answering, failure
from tests.support.paths import ROOT
from tests.support.upstreams.certificates import certificate
from tests.support.upstreams.loopback import Peer

WEATHER: Json = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}},
}


# Behind a proxy, and at a relay ----------------------------------------------------------------


def bearer_only(path: str, head: str, body: Json) -> Reply:
    if f"authorization: bearer {KEY}" not in head:
        return "401 Unauthorized", failure("no token")
    return claude(path, head, body)


def claude(path: str, head: str, body: Json) -> Reply:
    block = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
    said = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [block],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 5, "output_tokens": 5},
    }
    return "200 OK", orjson.dumps(said)


@asynccontextmanager
async def serving(behave: Callable[[Peer], Any], **options: Any) -> AsyncIterator[int]:
    """A server on loopback; yields its port."""
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await behave(Peer(reader, writer, asyncio.Event()))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def tunnel(port: Callable[[], int], asked: list[str]) -> Callable[[Peer], Any]:
    """A CONNECT proxy behind which there is only one host."""

    async def behave(peer: Peer) -> None:
        head, _ = await peer.request()
        asked.append(head.split("\r\n")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port())
        await peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with suppress(ConnectionError):
                while data := await source.read(1 << 16):
                    sink.write(data)
                    await sink.drain()
                sink.close()

        await asyncio.gather(pump(peer.reader, writer), pump(reader, peer.writer))

    return behave


BOTH = """
[server]
port = PORT
[recall]
store = "off"
[upstreams.anthropic]
kind = "claude"
base_url = "https://claude.test:SECURE"
api_key = "env:KEY"
[upstreams.relay]
kind = "claude"
base_url = "http://127.0.0.1:RELAY"
api_key = "env:KEY"
[models.far]
upstream = "anthropic"
name = "claude-sonnet-4-5"
[models.near]
upstream = "relay"
name = "claude-sonnet-4-5"
"""


async def usetool(environment: Mapping[str, str], *arguments: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "middleware", *arguments,
        cwd=ROOT, env=environment, stdout=-1, stderr=-1,
    )  # fmt: skip
    out, err = await process.communicate()
    return process.returncode, out.decode() + err.decode()


# Only a TLS upstream has a proxy asked for CONNECT; no package we test with makes certificates.
@pytest.mark.skipif(
    shutil.which("openssl") is None,
    reason="no openssl here to make the fake upstream's certificate",
)
def test_check_prints_the_lines_a_proxy_and_a_relay_need_and_with_them_tools_are_called(
    tmp_path: Path,
) -> None:
    chain, context = certificate(tmp_path)
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    async def run() -> None:
        far, near = Seen(), Seen()
        async with (
            serving(answering(far, claude), ssl=context) as secure,
            serving(answering(near, bearer_only)) as relay,
            serving(tunnel(lambda: secure, asked)) as proxy,
        ):
            environment = {**os.environ, "KEY": KEY, "SSL_CERT_FILE": str(chain)}
            environment |= {"HTTPS_PROXY": f"http://127.0.0.1:{proxy}"}
            text = BOTH.replace("SECURE", str(secure)).replace("RELAY", str(relay))
            path = tmp_path / "config.toml"
            path.write_text(text.replace("PORT", str(port)))
            code, said = await usetool(environment, "check", "--live", "--config", str(path))
            assert code == 1
            missing = 'write proxy = "env:HTTPS_PROXY" under [upstreams.anthropic]'
            assert missing in said
            assert 'write auth = "bearer" under [upstreams.relay]' in said
            assert "HTTPS_PROXY is set, but" in said
            assert KEY not in said
            fixed = path.read_text()
            for name, line in (
                ("anthropic", 'proxy = "env:HTTPS_PROXY"'),
                ("relay", 'auth = "bearer"'),
            ):
                fixed = fixed.replace(f"[upstreams.{name}]", f"[upstreams.{name}]\n{line}")
            path.write_text(fixed)
            code, said = await usetool(environment, "check", "--live", "--config", str(path))
            assert (code, said.count("answers, and takes tools")) == (0, 2), said
            asked.clear()
            far.requests.clear()
            await call_tools(environment, path, port)
            assert asked == [f"connect claude.test:{secure} http/1.1"]
            assert len(far.requests) == 1

    asyncio.run(run())


async def call_tools(environment: Mapping[str, str], path: Path, port: int) -> None:
    """Serve the config, and have both models call a tool."""
    import aiohttp

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "middleware", "serve", "--config", str(path),
        cwd=ROOT, env=environment, stderr=-1,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        await process.stderr.readline()
        async with aiohttp.ClientSession() as session:
            for model in ("far", "near"):
                body = {"model": model, "messages": [{"role": "user", "content": "Weather?"}]}
                async with session.post(
                    f"http://127.0.0.1:{port}/v1/chat/completions",
                    json={**body, "tools": [WEATHER]},
                ) as answer:
                    said = await answer.json()
                    assert answer.status == 200, said
                    assert said["choices"][0]["finish_reason"] == "tool_calls"
    finally:
        process.terminate()
        await process.communicate()
