"""Where no config is named: this folder's own, else the one that comes with the package."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from middleware import config
from middleware.__main__ import main
from middleware.cli import describe
from middleware.cli.command import FINE, WRONG
from middleware.cli.default_config import built_in
from tests.support.paths import ROOT

SHIPPED = (ROOT / "config.toml").read_bytes()
DEMO = '[upstreams.s]\nkind = "scripted"\n[models.{}]\nupstream = "s"\n'
REQUEST = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_config_the_built_in_one_is_read(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models"]) == FINE
    assert re.search(r"^demo +demo +available$", capsys.readouterr().out, re.MULTILINE)
    (empty / "request.json").write_text(json.dumps(REQUEST))
    assert main(["explain", "request.json"]) == FINE
    assert "1. demo: no server is asked" in capsys.readouterr().out
    main(["check"])
    said = capsys.readouterr().out
    assert said.startswith(f"{built_in()}: no mistakes; ")
    assert "config   the built-in one, as no config.toml is here" in said


def test_this_folders_own_config_goes_before_it(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (empty / "config.toml").write_text(DEMO.format("mine"))
    assert main(["models"]) == FINE
    assert capsys.readouterr().out == "mine  s  available\n"


@pytest.mark.parametrize("broken", ["text", "empty", "folder", "dangling"])
@pytest.mark.parametrize("command", ["models", "check", "serve", "chat", "last"])
def test_a_broken_config_is_never_replaced(
    broken: str, command: str, empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = empty / "config.toml"
    match broken:
        case "text":
            path.write_text("[server")
        case "empty":
            path.write_text("")
        case "folder":
            path.mkdir()
        case "dangling":
            path.symlink_to("gone.toml")
    assert main([command]) == WRONG
    assert capsys.readouterr().err.startswith("config.toml: ")


def test_a_config_that_is_named_and_missing_is_not_replaced(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "--config", "config.toml"]) == WRONG
    assert capsys.readouterr().err.startswith("config.toml: cannot be read")


def test_the_banner_says_that_it_is_the_built_in_one_and_how_to_change_it(empty: Path) -> None:
    found = config.load(built_in(), environment={})
    first, second, *_ = describe.banner(found, ()).splitlines()
    assert str(built_in()) in first
    assert " ".join(second.split()) == (
        "config the built-in one, as no config.toml is here: usetool init writes one to change"
    )
    (empty / "config.toml").write_bytes(SHIPPED)
    assert "built-in" not in describe.banner(config.load("config.toml", environment={}), ())


def test_init_writes_the_shipped_config_and_says_what_to_do_next(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init"]) == FINE
    assert (empty / "config.toml").read_bytes() == SHIPPED
    told = capsys.readouterr().out
    assert "usetool check" in told
    assert "usetool serve" in told
    assert main(["models"]) == FINE


@pytest.mark.parametrize("dangling", [False, True])
def test_init_writes_over_nothing(
    dangling: bool, empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = empty / "config.toml"
    if dangling:
        path.symlink_to("gone.toml")
    else:
        path.write_text("mine")
    assert main(["init"]) == WRONG
    assert capsys.readouterr().err.startswith("config.toml is there already")
    assert not (empty / "gone.toml").exists()
    assert dangling or path.read_text() == "mine"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root writes everywhere")
def test_init_says_why_it_cannot_write(empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty.chmod(0o500)
    assert main(["init"]) == WRONG
    assert capsys.readouterr().err == "config.toml: Permission denied\n"


# Installed -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package from a wheel, as it is installed: nothing of the repository is beside it."""
    folder = tmp_path_factory.mktemp("wheel")
    files = subprocess.run(
        ["git", "ls-files", "-z", "adapters", "middleware", "*.toml", "*.in", "*.md", "setup.py"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    if not files:
        pytest.skip("no git here")
    for name in filter(None, files.split("\0")):
        target = folder / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            target.write_bytes((ROOT / name).read_bytes())
    quiet = ["--quiet", "--disable-pip-version-check", "--no-compile", "--no-index", "--no-deps"]
    quiet += ["--no-build-isolation"]
    made = subprocess.run(
        [sys.executable, "-m", "pip", "install", *quiet, "--target", "installed", "./source"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return folder / "installed"


def test_what_is_installed_has_the_shipped_config(installed: Path) -> None:
    assert (installed / "middleware/config/default.toml").read_bytes() == SHIPPED
    assert not (installed / "config.toml").exists()


def test_installed_it_serves_in_an_empty_folder(installed: Path, empty: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(installed), "XDG_STATE_HOME": str(empty)}
    command = [sys.executable, "-m", "middleware", "serve", "--port", str(port)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            first, second = server.stderr.readline(), server.stderr.readline()
            assert str(installed / "middleware/config/default.toml") in first
            assert "usetool init" in second
            address = f"http://127.0.0.1:{port}/v1/chat/completions"
            headers = {"content-type": "application/json"}
            asked = urllib.request.Request(address, json.dumps(REQUEST).encode(), headers)
            with urllib.request.urlopen(asked, timeout=20) as answer:
                assert answer.status == 200
        finally:
            server.terminate()
