"""`usetool models` and `usetool serve`, the config that is shipped, and completion."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path

import pytest

from adapters.shared.traits import Traits
from middleware import __version__, config
from middleware.__main__ import NOBODY_READS, main
from middleware.cli import completion, describe
from middleware.cli import parser as commands
from middleware.cli.command import FINE, LACKING
from middleware.config.keys import MODEL, SECTIONS, SERVER
from middleware.routing import ModelEntry
from middleware.server.models import Status
from tests.cli.running import CONFIG, run
from tests.support.paths import ROOT

# models, serve ---------------------------------------------------------------------------------


def test_models_lists_what_there_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == FINE
    assert capsys.readouterr().out.splitlines() == [
        "plain     open    available",
        "locked-*  locked  the environment variable LOCKED_KEY is not set",
    ]


def test_serve_says_where_it_is_and_answers_until_it_is_interrupted(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    path = folder / "config.toml"
    command = [sys.executable, "-m", "middleware", "serve", "--config", str(path), "--port", port]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        banner = [server.stderr.readline() for _ in range(5)]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=20) as answer:
                assert answer.status == 200
                assert answer.headers.get("server") is None
            taken = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == FINE
    assert banner[0] == f"usetool {__version__} on http://127.0.0.1:{port}/v1 ({path})\n"
    assert banner[1].split() == ["models", "plain"]
    assert "locked-*: the environment variable LOCKED_KEY is not set" in banner[2]
    assert taken.returncode == LACKING
    assert "Address already in use. Choose another" in taken.stderr


def began(*arguments: str, shown: str = "") -> subprocess.Popen[str]:
    # A suite that a shell runs in the background ignores Ctrl-C, and its children would too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, *([shown] if shown else []), "-m", "middleware", *arguments],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("module", ["argparse", "middleware.config.keys", "orjson", "uvicorn"])
def test_ctrl_c_during_the_start_says_stopping_and_no_more(module: str, folder: Path) -> None:
    config = ("--config", str(folder / "config.toml"), "--port", "8199")
    with began("serve", *config, shown="-Ximporttime") as process:
        assert process.stderr is not None
        while not process.stderr.readline().rstrip().endswith(f" {module}"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=120)[1].splitlines(keepends=True)
        told = [line for line in said if not line.startswith("import time:")]
    assert told == ["stopping\n"]


@pytest.mark.parametrize(
    "command", [("--help",), ("check", "--help"), ("check",), ("models",), ("completion", "bash")]
)
def test_who_reads_no_further_gets_no_traceback(command: tuple[str, ...], folder: Path) -> None:
    config = () if command[-1] in ("--help", "bash") else ("--config", str(folder / "config.toml"))
    with began(*command, *config) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode in (FINE, NOBODY_READS)  # argparse itself ends --help


def test_the_banner_tells_clients_to_send_a_key_if_one_is_asked() -> None:
    text = '[server]\nhost = "::"\nkeys = ["K"]\n' + CONFIG.replace("[server]\nport = PORT", "")
    found = config.parse(text, environment={})
    said = describe.banner(found, ())
    assert "http://[::]:8000/v1/chat/completions" in said
    assert "-H 'authorization: Bearer KEY'" in said
    assert "a client must send one of 1" in said


# The config that is shipped --------------------------------------------------------------------


def test_the_shipped_config_runs_without_any_key() -> None:
    found = config.load(ROOT / "config.toml", environment={})
    assert found.server.host == "127.0.0.1"
    assert found.models["demo"].upstream
    assert found.upstreams[found.models["demo"].upstream].kind == "scripted"
    keyless = [up.kind for up in found.upstreams.values() if not up.missing()]
    assert keyless == ["local", "scripted", "ollama"]


@pytest.mark.parametrize(
    ("key", "found", "proposed"),
    [
        ("", [], "local"),
        ("", ["ollama/small", "ollama/large"], "ollama/small"),
        ("ANTHROPIC_API_KEY", [], "sonnet"),
        ("DEEPSEEK_API_KEY", [], "deepseek"),
        ("OPENAI_API_KEY", [], "gpt"),
    ],
)
def test_the_banner_proposes_what_is_found_before_the_embedded_model(
    key: str, found: list[str], proposed: str
) -> None:
    shipped = config.load(ROOT / "config.toml", environment={key: "k"} if key else {})
    statuses = []
    for name, model in shipped.models.items():
        lacking = "no key" if shipped.upstreams[model.upstream].missing() else ""
        names = found if name == "ollama/*" else [name.replace("*", "x")]
        reason = "" if names else "no model was found at http://127.0.0.1:11434"
        entry = ModelEntry(name, "", not lacking, lacking, "", ())
        statuses.append(Status(entry, dict.fromkeys(names, Traits()), lacking or reason))
    said = describe.banner(shipped, statuses)
    assert f'"model":"{proposed}"' in said
    assert ("ollama/*: no model was found at http://127.0.0.1:11434" in said) is (not found)
    assert "local: when it is first asked" in said


def test_the_shipped_config_mentions_every_key_of_the_server_and_the_timeouts() -> None:
    text = (ROOT / "config.toml").read_text("utf-8")
    for section in ("server", "defaults.timeouts"):
        for name in SECTIONS[section]:
            assert re.search(rf"\b{name} = ", text), name
    assert {"host", "keys"} <= SERVER.keys()
    assert {"defaults", "override", "drop"} <= MODEL.keys()


# Completion ------------------------------------------------------------------------------------


def completed(shell: str, line: str) -> list[str]:
    """What a shell would offer behind the words of a line."""
    script = run("completion", shell).stdout
    if shell == "bash":
        words = line.split(" ")
        script += f"COMP_WORDS=({' '.join(words[:-1])} '{words[-1]}')\n"
        script += f"COMP_CWORD={len(words) - 1}\n_usetool\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        command = ["bash", "--norc"]
    elif shell == "zsh":
        # Outside of the line editor there is nothing to offer to: what is offered is printed.
        script = (
            "compdef() { }\ncompadd() { shift; print -l -- $@ }\n_files() { }\n"
            f"{script}\nwords=({line})\nCURRENT={len(line.split(' '))}\n_usetool\n"
        )
        command = ["zsh", "-f"]
    else:
        script += f"complete -C '{line}'\n"
        command = ["fish", "--no-config"]
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {shell} here")
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return [word.split("\t")[0] for word in done.stdout.split("\n") if word]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_offers_commands_and_their_options(shell: str) -> None:
    offered = completed(shell, "usetool ")
    assert {"serve", "check", "explain", "last", "models", "chat", "import"} <= {*offered}
    assert {"--curl", "--url", "--config"} <= {*completed(shell, "usetool last --")}
    assert "litellm" in completed(shell, "usetool import ")
    assert "--curl" not in completed(shell, "usetool chat --")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_knows_every_command_and_option(shell: str) -> None:
    script = run("completion", shell).stdout
    parser = commands.parser()
    for name, options in completion.words(parser).items():
        assert name in script
        for option in options:
            assert option in script


# The project -----------------------------------------------------------------------------------


def test_the_licence_is_there_and_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["license"] == "MIT"
    assert (ROOT / "LICENSE").read_text("utf-8").startswith("MIT License\n\nCopyright (c) 2026 The")
