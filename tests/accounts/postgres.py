"""A real PostgreSQL of a test's own; where there is none its tests are skipped."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_USERS = ("postgres", "nobody")
"""PostgreSQL does not run as root: whoever of these is there runs it then."""


class PostgresServer:
    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        # Pytest closes its own folders to other users, again and again.
        self._folder = TemporaryDirectory(prefix="usetool-postgres-")
        self._data = Path(self._folder.name) / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._user = _user()

    @property
    def url(self) -> str:
        return f"postgresql://tester@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        programs = {name: _program(name) for name in ("initdb", "postgres")}
        if missing := [name for name, path in programs.items() if not path]:
            pytest.skip(f"{' and '.join(missing)} of PostgreSQL is not installed")
        if os.geteuid() == 0 and self._user is None:
            pytest.skip("PostgreSQL does not run as root, and there is no other user")
        if not self._data.exists():
            self._data.mkdir(mode=0o700)
            if self._user is not None:
                shutil.chown(self._folder.name, self._user)
                shutil.chown(self._data, self._user)
            made = [programs["initdb"], "-D", str(self._data), "-U", "tester", "-A", "trust", "-N"]
            subprocess.run(made, check=True, stdout=subprocess.DEVNULL, user=self._user)
        given = ["-D", str(self._data), "-h", "127.0.0.1", "-p", str(self.port)]
        given += ["-c", "unix_socket_directories=", "-c", "fsync=off"]
        self._process = subprocess.Popen(
            [programs["postgres"], *given], stderr=subprocess.DEVNULL, user=self._user
        )
        self._wait()

    def _wait(self) -> None:
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 0.2):
                    return
            except OSError:
                time.sleep(0.02)
        raise AssertionError("postgres did not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(20)
            self._process = None

    def remove(self) -> None:
        self.stop()
        self._folder.cleanup()


def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    there = {one.pw_name for one in pwd.getpwall()}
    return next((name for name in _USERS if name in there), None)


def _program(name: str) -> str:
    """Debian keeps its programs beside the path, by version."""
    folders = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
    path = os.pathsep.join([os.environ.get("PATH", ""), *folders])
    return shutil.which(name, path=path) or ""
