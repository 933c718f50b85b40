"""`usetool record` and `usetool replay` around a command: what they run, tell, and end with."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from adapters.protocol import Json
from middleware.__main__ import main
from middleware.cassettes.cassette import Cassette
from middleware.cassettes.file import cassette_text, write_cassette
from tests.cassette.core.desk import asking
from tests.cassette.turns import said, turn
from tests.support.paths import ROOT

CONFIG = """
[recall]
store = "off"
[upstreams.script]
kind = "scripted"
[models.m]
upstream = "script"
[upstreams.away]
kind = "compatible"
base_url = "http://127.0.0.1:1/v1"
[models.away]
upstream = "away"
name = "x"
retry = 0
"""
# Asks for each of its arguments, swallows what fails, and ends with the code it is told.
APP = """
import http.client, json, os, sys
host = os.environ["OPENAI_BASE_URL"].split("/")[2]
for text in sys.argv[2:]:
    model, _, words = text.rpartition(":")
    body = {"model": model or "m", "messages": [{"role": "user", "content": words}]}
    client = http.client.HTTPConnection(host)
    headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    client.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    answer = json.loads(client.getresponse().read())
    print(answer["choices"][0]["message"]["content"] if "choices" in answer else "sorry")
sys.exit(int(sys.argv[1]))
"""
Run = Callable[..., int]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config.toml").write_text(CONFIG, "utf-8")
    (tmp_path / "app.py").write_text(APP, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    return tmp_path


def app(*asks: str, code: int = 0) -> list[str]:
    return ["--", sys.executable, "-IS", "app.py", str(code), *asks]


def keep(folder: Path, *texts: str) -> None:
    """A cassette `t` that answers these texts in capitals."""
    turns = tuple(
        turn(at, asking(text), answer=said(text.upper())) for at, text in enumerate(texts, 1)
    )
    path = folder / "cassettes/t.yaml"
    write_cassette(path, cassette_text(Cassette(turns=turns, recorded="2026-11-18")))


def test_what_was_recorded_is_replayed_without_its_config(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", "t", *app("one", "two")]) == 0
    live = capfd.readouterr()
    (folder / "config.toml").unlink()
    assert main(["replay", "t", *app("one", "two")]) == 0
    again = capfd.readouterr()
    assert again.out == live.out
    assert "This is a scripted model" in live.out
    assert "usetool record t: 2 turns" in live.err
    assert "usetool replay t: played 2 of 2" in again.err


class Row(NamedTuple):
    name: str
    arguments: Sequence[str]
    code: int
    said: str = ""


MISSING = "There is no cassette other.yaml"
FAULT = "- {turn: 9, status: 500}\n"
REPLAYED: Sequence[Row] = (
    Row("unused", ["t", *app("one")], 0, "Not played: 2"),
    Row("unused is meant to fail", ["t", "--all-played", *app("one")], 4, "Not played: 2"),
    Row("missed", ["t", *app("three")], 3, "t.yaml has no turn like this"),
    Row("exhausted", ["t", *app("one", "one")], 3, "t.yaml has this ask in 1 turn"),
    Row("no cassette", ["other", *app("one")], 3, MISSING),
    Row("asked nothing", ["t", *app()], 5, "The command asked nothing"),
    Row("its own code", ["t", *app("three", code=7)], 7, "t.yaml has no turn like this"),
    Row("no command", ["t", "--", "no-such-command"], 127, "There is no command"),
    Row("killed", ["t", "--", "sh", "-c", "kill -9 $$"], 137),
    Row("fault that never acts", ["t", "--faults", "f.yaml", *app("one")], 3, "f.yaml, rule 1"),
    Row("fault that is none", ["t", "--faults", "app.py", *app("one")], 2, "app.py"),
    Row("report that is none", ["t", "--report", "r.txt", *app("one")], 2, "r.txt"),
    Row("no name", ["../t", *app("one")], 2, "no name of a cassette"),
    Row("a name like another", ["T", *app("one")], 2, "differs from it only in case"),
    Row("timing", ["t", "--timing", "often", *app("one")], 2, "--timing is 'often'"),
    Row("a file", ["cassettes/t.yaml", *app("one", "two")], 0, "played 2 of 2"),
)  # fmt: skip


@pytest.mark.parametrize("row", REPLAYED, ids=[row.name for row in REPLAYED])
def test_what_a_replay_ends_with(folder: Path, row: Row, capfd: pytest.CaptureFixture[str]) -> None:
    keep(folder, "one", "two")
    (folder / "f.yaml").write_text(FAULT, "utf-8")
    assert main(["replay", *row.arguments]) == row.code
    assert row.said in capfd.readouterr().err


RECORDED: Sequence[Row] = (
    Row("not whole", ["t", *app("one", "away:two")], 4, "Turn 2 is not whole: reset"),
    Row("errors are meant", ["t", "--keep-errors", *app("one", "away:two")], 0, "2 turns"),
    Row("errors are left out", ["t", "--only-good", *app("one", "away:two")], 0, "1 turn,"),
    Row("failures alone", ["old", *app("away:two")], 4, "Turn 1 is not whole"),
    Row("asked nothing", ["t", *app()], 5, "The command asked nothing"),
    Row("unreadable", ["bad", *app("one")], 2, "bad.yaml"),
    Row("a name like another", ["OLD", *app("one")], 2, "differs from it only in case"),
    Row("no command to check", ["t", "--check"], 2, "--check runs the COMMAND again"),
    Row("report that is none", ["t", "--report", "r.txt", *app("one")], 2, "r.txt"),
    Row("checked", ["t", "--check", *app("one", "one")], 0, "played 2 of 2"),
)


@pytest.mark.parametrize("row", RECORDED, ids=[row.name for row in RECORDED])
def test_what_a_recording_ends_with(
    folder: Path, row: Row, capfd: pytest.CaptureFixture[str]
) -> None:
    keep(folder, "one")
    old, bad = folder / "cassettes/old.yaml", folder / "cassettes/bad.yaml"
    (folder / "cassettes/t.yaml").rename(old)
    bad.write_text("turns: [", "utf-8")
    before = old.read_bytes()
    assert main(["record", *row.arguments]) == row.code
    assert row.said in capfd.readouterr().err
    assert old.read_bytes() == before
    assert bad.read_text("utf-8") == "turns: ["


def test_a_check_looks_where_it_was_recorded(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "config.toml").write_text(f'{CONFIG}[cassettes]\nfolder = "tapes"\n', "utf-8")
    assert main(["record", "t", "--check", *app("one")]) == 0
    assert (folder / "tapes/t.yaml").exists()
    assert "played 1 of 1" in capfd.readouterr().err


def test_a_check_says_what_would_be_missed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The process's id is another in the second run."""
    now = ["--", "sh", "-c", f'"{sys.executable}" -IS app.py 0 "I am $$"']
    assert main(["record", "t", "--check", *now]) == 3
    assert "t.yaml has no turn like this" in capfd.readouterr().err


@pytest.mark.parametrize("command", [["record", "t"], ["cassette", "refresh", "t"]])
def test_a_job_asks_no_provider_by_accident(
    folder: Path,
    command: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CI", "1")
    keep(folder, "one")
    before = (folder / "cassettes/t.yaml").read_bytes()
    child = app("one") if command[0] == "record" else []
    assert main([*command, *child]) == 2
    assert "--allow-live" in capfd.readouterr().err
    assert (folder / "cassettes/t.yaml").read_bytes() == before
    # The same ask gets another answer now: recording replaces it, refreshing only says so.
    assert main([*command, "--allow-live", *child]) == 0
    assert (folder / "cassettes/t.yaml").read_bytes() != before


def test_a_report_is_written_for_programs(folder: Path) -> None:
    keep(folder, "one", "How warm is it now?")
    assert main(["replay", "t", "--report", "r.json", *app("one", "How warm is it here?")]) == 3
    found: Json = json.loads((folder / "r.json").read_text("utf-8"))
    assert (found["cassette"], found["mode"], found["exit"]) == ("t", "replay", 3)
    assert (found["turns"], found["played"], found["unused"]) == (2, [1], [2])
    (miss,) = found["missed"]
    assert (miss["code"], miss["nearest"]) == ("cassette_miss", 2)
    (difference,) = miss["differences"]
    assert (difference["path"], difference["recorded"], difference["now"]) == (
        "messages[0].content",
        "How warm is it now?",
        "How warm is it here?",
    )


def test_a_replay_that_listens_says_what_is_there(folder: Path) -> None:
    keep(folder, "one")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "middleware", "replay", "t", "--port", port]
    path = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=path, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        told = [server.stderr.readline() for _ in range(3)]
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)
    assert told[1].split()[:3] == ["cassettes", "replay", "t,"]
    assert told[2].split() == ["models", "m"]


@pytest.mark.parametrize(("file", "name"), [("bugs/t.yaml", "t"), ("bugs/my bug.yaml", "my-bug--")])
def test_a_path_is_told_as_it_was_written(
    folder: Path, file: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    keep(folder, "one")
    (folder / "bugs").mkdir()
    (folder / "cassettes/t.yaml").rename(folder / file)
    echo = ["--", "sh", "-c", "echo $USETOOL_CASSETTE"]
    assert main(["replay", file, "--report", "r.json", *app("two")]) == 3
    told = capfd.readouterr().err
    assert f"usetool replay {file}: played 0 of 1" in told
    assert f"usetool record {shlex.quote(file)} --mode auto" in told
    assert json.loads((folder / "r.json").read_text("utf-8"))["cassette"] == file
    assert main(["replay", file, *echo]) == 5
    assert capfd.readouterr().out.startswith(name)


def test_a_command_is_led_to_the_gateway_without_the_keys_of_models(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    keep(folder, "one")
    monkeypatch.setenv("GROQ_API_KEY", "a real key")
    monkeypatch.setenv("MINE", "my own")
    names = ("OPENAI_API_KEY", "USETOOL_RECORDED_AT", "GROQ_API_KEY", "MINE")
    echo = 'echo "' + " ".join(f"${name}" for name in names) + '"'
    assert main(["replay", "t", "--", "sh", "-c", echo]) == 5
    assert capfd.readouterr().out == "usetool~t 2026-11-18 replayed my own\n"


@pytest.mark.parametrize("command", [["record", "--mode", "auto"], ["replay"]])
def test_faults_that_cannot_be_meant_end_a_run_before_it_begins(
    command: list[str], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    keep(folder, "one")
    (folder / "cassettes/t.faults.yaml").write_text("- {turn: 1, explode: true}", "utf-8")
    assert main([*command, "t", *app("one")]) == 2
    told = capfd.readouterr()
    assert (told.out, told.err.split(":")[0]) == ("", "t.faults.yaml, rule 1")
