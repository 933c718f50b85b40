"""A real redis-server of a test's own; where there is none its tests are skipped."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest


class RedisServer:
    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("redis-server is not installed")
        given = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder)]
        given += ["--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen([program, *given], stdout=subprocess.DEVNULL)
        ends = time.monotonic() + 10
        while time.monotonic() < ends:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 0.2) as connection:
                    connection.sendall(b"PING\r\n")
                    if connection.recv(16).startswith(b"+PONG"):
                        return
            except OSError:
                time.sleep(0.02)
        raise AssertionError("redis-server did not start")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
