"""A client with a gateway beside it: what it reaches, how it ends, and what is left of it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

CONFIG = """
[server]
keys = ["K"]
[ledger]
url = "off"
[recall]
store = "off"
[upstreams.script]
kind = "scripted"
[models.demo]
upstream = "script"
"""
ASKS = """
import json, os, sys, urllib.request
messages = [{"role": "user", "content": "hi"}]
said = json.dumps({"model": "demo", "stream": False, "messages": messages})
for name, path in (("OPENAI_BASE_URL", "/chat/completions"), ("OLLAMA_HOST", "/api/chat")):
    answer = urllib.request.urlopen(os.environ[name] + path, said.encode())
    assert json.load(answer), name
print(os.environ["OLLAMA_HOST"], sys.argv[1:])
sys.exit(7)
"""
WAITS = "import time; print('here', flush=True); time.sleep(60)"


def begin(folder: Path, *command: str) -> subprocess.Popen[str]:
    config = folder / "config.toml"
    config.write_text(CONFIG)
    return subprocess.Popen(
        [sys.executable, "-m", "middleware", "run", "--config", str(config), *command],
        cwd=ROOT,
        env={**os.environ, "XDG_STATE_HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_client_reaches_its_gateway_and_its_code_is_ours(tmp_path: Path) -> None:
    running = begin(tmp_path, sys.executable, "-c", ASKS, "--json", "-m", "x")
    out, told = running.communicate(timeout=300)
    assert running.returncode == 7, told
    address, _, arguments = out.strip().partition(" ")
    assert arguments == "['--json', '-m', 'x']"
    assert f"asks the gateway at {address}, model 'demo'" in told
    with socket.socket() as gone, pytest.raises(ConnectionRefusedError):
        gone.connect(("127.0.0.1", int(address.rpartition(":")[2])))


@pytest.fixture
def hangs_up() -> Iterator[None]:
    """Under `nohup`, whoever is started here would ignore it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangs_up")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGHUP, 129)]
)
def test_what_would_end_it_ends_the_client(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    running = begin(tmp_path, sys.executable, "-c", WAITS)
    assert running.stdout is not None
    assert running.stdout.readline() == "here\n"
    running.send_signal(signal.SIGINT)  # the client hears it itself, in a terminal
    running.send_signal(number)
    running.communicate(timeout=300)
    assert running.returncode == code


def test_a_client_that_is_not_there(tmp_path: Path) -> None:
    running = begin(tmp_path, "no-such-client")
    _, told = running.communicate(timeout=300)
    assert running.returncode == 127
    assert "There is no command 'no-such-client'." in told
