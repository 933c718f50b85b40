"""Start the upstream, the bare pass-through and the gateway, load them in turn, print ratios."""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import orjson

SCRIPTS = ("plain", "stream", "tools")
ROUNDS, REQUESTS, CONNECTIONS = 3, 600, 16
_ROOT = Path(__file__).parents[2]
_TOOL = {
    "type": "function",
    "function": {
        "name": "web_search",
        "description": "Search the web.",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    },
}
_CONFIG = """
[server]
port = {port}
[recall]
store = "memory"
[upstreams.mock]
kind = "claude"
base_url = "http://127.0.0.1:{upstream}"
api_key = "k"
[models.bench]
upstream = "mock"
name = "claude-sonnet-4-5"
"""


def main() -> int:
    ports = [_free_port() for _ in range(3)]
    upstream, bare, ours = ports
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.toml"
        config.write_text(_CONFIG.format(port=ours, upstream=upstream), "utf-8")
        commands: Mapping[int, Sequence[str]] = {
            upstream: ["-m", "tests.bench.upstream", str(upstream)],
            bare: [*_UVICORN, "--port", str(bare), "tests.bench.bare:app"],
            ours: ["-m", "middleware", "serve", "--config", str(config)],
        }
        environment = {"UPSTREAM": f"http://127.0.0.1:{upstream}/v1/messages"}
        with _running(commands, environment) as processes:
            for script in SCRIPTS:
                _compare(script, {"bare": bare, "ours": ours}, processes)
    return 0


_UVICORN = ("-m", "uvicorn", "--no-access-log", "--log-level", "warning")


def _compare(script: str, ports: Mapping[str, int], processes: Mapping[int, int]) -> None:
    cost: dict[str, list[float]] = {name: [] for name in ports}
    for _ in range(ROUNDS):
        for name, port in ports.items():
            cost[name].append(asyncio.run(_load(port, script, processes[port])))
    bare, ours = (statistics.median(cost[name]) for name in ("bare", "ours"))
    print(f"{script:8} bare {bare:7.0f} us   ours {ours:7.0f} us   ratio {ours / bare:.2f}")


async def _load(port: int, script: str, process: int) -> float:
    """CPU microseconds a request costs the server behind a port."""
    request = _request(port, script)
    each = REQUESTS // CONNECTIONS
    before = _cpu_seconds(process)
    await asyncio.gather(*(_ask(port, request, each) for _ in range(CONNECTIONS)))
    return (_cpu_seconds(process) - before) / (each * CONNECTIONS) * 1e6


async def _ask(port: int, request: bytes, times: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(times):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head[:20]:
            raise RuntimeError((head + await reader.read(500)).decode())
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        await (reader.readexactly(int(length)) if length else reader.readuntil(b"\r\n0\r\n\r\n"))
    writer.close()


def _request(port: int, script: str) -> bytes:
    body = {
        "model": "bench",
        "max_tokens": 1024,
        "tools": [_TOOL],
        "messages": [
            {"role": "system", "content": f"You are careful. [{script}]"},
            {"role": "user", "content": "Which city hosts the largest book fair?"},
        ],
    }
    if script != "plain":
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    said = orjson.dumps(body)
    return b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n%b\r\n%b\r\n\r\n%b" % (
        port,
        b"content-type: application/json",
        b"content-length: %d" % len(said),
        said,
    )


def _cpu_seconds(process: int) -> float:
    # The process's own CPU clock: see clock_getcpuclockid(3).
    return time.clock_gettime(~process << 3 | 2)


@contextmanager
def _running(
    commands: Mapping[int, Sequence[str]], environment: Mapping[str, str]
) -> Iterator[Mapping[int, int]]:
    """Port → id of the process that listens there."""
    started = {
        port: subprocess.Popen(
            [sys.executable, *command],
            cwd=_ROOT,
            env={**os.environ, **environment},
            stderr=subprocess.DEVNULL,
        )
        for port, command in commands.items()
    }
    try:
        for port in started:
            _wait_for(port)
        yield {port: process.pid for port, process in started.items()}
    finally:
        for process in started.values():
            process.terminate()
            process.wait()


def _wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
