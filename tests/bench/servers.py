"""The upstream, the bare pass-through and the gateways, each a process with a port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bench.load import Server
from tests.support.paths import ROOT

_UVICORN = ("-m", "uvicorn", "--no-access-log", "--log-level", "warning")
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
_CASSETTES = """
[cassettes]
mode = "{mode}"
folder = "{folder}"
repeats = "last"
"""


@contextmanager
def upstream() -> Iterator[Server]:
    port = _free_port()
    with _running(port, ["-m", "tests.bench.upstream", str(port)]) as server:
        yield server


@contextmanager
def bare(up: Server) -> Iterator[Server]:
    port = _free_port()
    os.environ["UPSTREAM"] = f"http://127.0.0.1:{up.port}/v1/messages"
    with _running(port, [*_UVICORN, "--port", str(port), "tests.bench.bare:app"]) as server:
        yield server


@contextmanager
def gateway(
    up: Server, folder: Path, mode: str = "", tree: Path = ROOT, *, finishes: bool = False
) -> Iterator[Server]:
    """`mode` is that of its cassettes; empty: it has none. Who records finishes them only if it is
    let: of a load that takes longer than the load.
    """
    port = _free_port()
    text = _CONFIG.format(port=port, upstream=up.port)
    config = folder / f"{port}.toml"
    config.write_text(text + (_CASSETTES.format(mode=mode, folder=folder) if mode else ""), "utf-8")
    command = ["-m", "middleware", "serve", "--config", str(config)]
    end = signal.SIGTERM if finishes else signal.SIGKILL
    with _running(port, command, tree, end) as server:
        yield server


@contextmanager
def _running(
    port: int, command: Sequence[str], tree: Path = ROOT, end: signal.Signals = signal.SIGTERM
) -> Iterator[Server]:
    process = subprocess.Popen([sys.executable, *command], cwd=tree, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield Server(port, process.pid)
    finally:
        process.send_signal(end)
        process.wait()


def _wait_for(port: int) -> None:
    for _ in range(400):
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
