"""The config of `deploy/fleet`, served twice beside a real Redis and a real PostgreSQL."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.accounts.postgres import PostgresServer
from tests.state.server import RedisServer
from tests.support.paths import ROOT

CONFIG = ROOT / "deploy" / "fleet" / "config" / "config.toml"
APP, OPERATOR = "key-of-the-app", "key-of-the-operator"
HELLO = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}


class Gateway(NamedTuple):
    port: int
    process: subprocess.Popen[bytes]

    def get(self, path: str, key: str = "") -> Any:
        return self._ask("GET", path, key, None)

    def chat(self) -> Any:
        return self._ask("POST", "/v1/chat/completions", APP, json.dumps(HELLO))

    def _ask(self, method: str, path: str, key: str, body: str | None) -> Any:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        told = json.loads(answer.read())
        connection.close()
        assert answer.status == 200, told
        return told


def test_two_gateways_of_the_fleet_count_as_one(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first, second = fleet(tmp_path, stack)
        for gateway in (first, second, first):
            assert gateway.chat()["choices"]
        assert counted(second, 3) == {"app": 3}
        ready = second.get("/readyz")
        assert ready["state"] == {"kind": "redis", "ok": True}
        assert ready["ledger"] == {"ok": True, "pending": 0}
        left = [one.get("/v1/models", OPERATOR)["data"] for one in (first, second)]
        assert left[0] == left[1]


def counted(gateway: Gateway, requests: int) -> dict[str, int]:
    """Requests by client, once so many are written down."""
    ends = time.monotonic() + 10
    while True:
        rows = gateway.get("/v1/usage?by=client", OPERATOR)["data"]
        found = {row["client"]: row["requests"] for row in rows}
        if sum(found.values()) >= requests or time.monotonic() > ends:
            return found
        time.sleep(0.2)


def fleet(folder: Path, stack: ExitStack) -> list[Gateway]:
    (folder / "redis").mkdir()
    redis, postgres = RedisServer(folder / "redis"), PostgresServer()
    for server, end in ((redis, redis.kill), (postgres, postgres.remove)):
        stack.callback(end)
        server.start()
    given = {
        "USETOOL_KEY": APP, "USETOOL_ADMIN_KEY": OPERATOR, "USETOOL_SECRET": "s",
        "STATE_URL": redis.url, "LEDGER_URL": postgres.url,
    }  # fmt: skip
    return [stack.enter_context(serving(folder / name, given)) for name in ("1", "2")]


@contextmanager
def serving(home: Path, given: dict[str, str]) -> Iterator[Gateway]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "middleware", "serve", "--config", str(CONFIG)]
    environment = {**os.environ, **given, "XDG_STATE_HOME": str(home)}
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port)],
        cwd=ROOT, env=environment, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        gateway = Gateway(port, process)
        _wait_for(gateway)
        yield gateway
        process.send_signal(signal.SIGTERM)
        process.wait(40)
    finally:
        process.kill()
        process.wait()


def _wait_for(gateway: Gateway) -> None:
    ends = time.monotonic() + 40
    while time.monotonic() < ends and gateway.process.poll() is None:
        try:
            gateway.get("/healthz")
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail("the gateway does not serve")
