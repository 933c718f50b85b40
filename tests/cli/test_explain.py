"""`usetool explain` asks for nothing that it does not need, and says what it waits for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from middleware.__main__ import main
from middleware.cli.command import FINE, LACKING
from tests.support.paths import ROOT

KEYS = """
[server]
host = "0.0.0.0"
keys = ["env:NOT_SET_GATEWAY"]
[upstreams.c]
kind = "claude"
api_key = "env:NOT_SET_KEY"
proxy = "env:NOT_SET_PROXY"
headers = { x-team = "env:NOT_SET_TEAM" }
[models.sonnet]
upstream = "c"
[upstreams.s]
kind = "scripted"
[models.demo]
upstream = "s"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.toml").write_text(KEYS)
    body = {"model": "sonnet", "messages": [{"role": "user", "content": "Hello"}]}
    (tmp_path / "request.json").write_text(json.dumps(body))
    return tmp_path


def test_no_variable_of_the_config_has_to_be_set(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "request.json"]) == FINE
    told = capsys.readouterr().out
    assert told.startswith("1. c: POST https://api.anthropic.com/v1/messages\n")
    assert "not-set" not in told


MESSAGES = [{"role": "user", "content": "Hello"}]
BODIES: dict[str, tuple[dict[str, Any], str]] = {
    "chat": ({"messages": MESSAGES, "max_tokens": 9}, ""),
    "chat with names": ({"messages": MESSAGES, "user": "u", "stop": ["x"]}, ""),
    "messages": ({"messages": MESSAGES, "max_tokens": 9, "system": "Be kind."}, ""),
    "messages by tools": (
        {"messages": MESSAGES, "max_tokens": 9, "tools": [{"name": "f", "input_schema": {}}]},
        "",
    ),
    "messages by name": ({"messages": MESSAGES, "max_tokens": 9}, "messages"),
    "responses": ({"input": "Hello"}, ""),
    "ollama": ({"messages": MESSAGES, "options": {"num_ctx": 99}}, ""),
    "ollama by name": ({"messages": MESSAGES, "format": "json"}, "ollama"),
    "generate": ({"prompt": "Hello"}, ""),
}


@pytest.mark.parametrize(("body", "door"), BODIES.values(), ids=BODIES)
def test_a_body_of_any_door_is_explained(
    folder: Path, capsys: pytest.CaptureFixture[str], body: dict[str, Any], door: str
) -> None:
    (folder / "request.json").write_text(json.dumps({"model": "sonnet", **body}))
    assert main(["explain", "request.json", *(["--door", door] if door else [])]) == FINE
    told = capsys.readouterr().out
    assert told.startswith("1. c: POST https://api.anthropic.com/v1/messages\n")
    assert "Hello" in told
    assert ("Be kind." in told) is ("system" in body)
    assert "_dropped" not in told


def test_what_no_door_is_called_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--door", "message", "request.json"]) == LACKING
    assert "There are: chat, responses, messages, ollama." in capsys.readouterr().err


def test_what_asks_no_model_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "request.json").write_text('{"model": "sonnet", "keep_alive": 0}')
    assert main(["explain", "request.json"]) == FINE
    assert "no upstream is asked" in capsys.readouterr().out


def test_a_model_without_a_server_is_not_said_to_be_posted_to(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "--model", "demo", "request.json"]) == FINE
    assert capsys.readouterr().out.startswith("1. s: no server is asked (scripted:)\n")


def test_an_id_and_a_file_are_two_requests(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["explain", "--id", "req_1", "request.json"])
    assert "not allowed with argument --id" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="has no such terminals")
def test_at_a_terminal_it_says_what_it_waits_for(folder: Path) -> None:
    ours, theirs = os.openpty()
    os.write(ours, b"{\n\x04")
    command = [sys.executable, "-m", "middleware", "explain"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, stdin=theirs, env=environment, capture_output=True, check=False, timeout=300
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == LACKING
    assert done.stderr.startswith(b"Type the JSON body of a request, then Ctrl-D")
