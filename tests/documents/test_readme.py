"""What README.md shows is so: every command in it is run, every block is read by what it is for."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.error import URLError

import pytest

from middleware import config
from middleware.__main__ import main
from middleware.cli.command import FINE
from middleware.config import PublicNames
from tests.documents.readme import README, RUN, USETOOL, Folder, shown
from tests.documents.test_documents import blocks, prose, text

pytestmark = pytest.mark.skipif(os.name == "nt", reason="its commands are for a POSIX shell")


def commands(word: str) -> list[str]:
    lines = "".join(blocks(README, "sh")).splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.startswith(word)]


@dataclass(frozen=True)
class Gateway:
    folder: Folder
    port: int

    def here(self, words: str) -> str:
        assert "127.0.0.1:8000" in words
        return words.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}")

    def is_there(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5):
                return True
        except (URLError, ConnectionError):
            return False


@pytest.fixture(scope="module")
def gateway(folder: Folder) -> Iterator[Gateway]:
    """What `make run` starts, on a port of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        found = Gateway(folder, free.getsockname()[1])
    command = folder.make("run")[-1].replace(USETOOL, RUN)
    with (
        (folder.path / "serve.log").open("w", encoding="utf-8") as log,
        subprocess.Popen(
            [*shlex.split(command), "--port", str(found.port)],
            cwd=folder.path, env=folder.environment, stderr=log,
        ) as process,
    ):  # fmt: skip
        try:
            until = time.monotonic() + 30
            while not found.is_there():
                said = (folder.path / "serve.log").read_text("utf-8")
                assert process.poll() is None, said
                assert time.monotonic() < until, said
                time.sleep(0.05)
            yield found
        finally:
            process.terminate()
            process.wait(30)


def holds(whole: Any, part: Any) -> bool:
    """Whether all that the part says stands in the whole, at its place."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            name in whole and holds(whole[name], value) for name, value in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and all(map(holds, whole, part)) and len(whole) == len(part)
    return bool(whole == part)


# Commands --------------------------------------------------------------------------------------


def test_every_make_target_is_there_and_the_two_commands_do_what_they_say(folder: Folder) -> None:
    targets = set(re.findall(r"\bmake ([\w-]+)", "".join(blocks(README, "sh")) + spans()))
    assert {"run", "test", "check", "bench", "record"} <= targets
    for target in targets:
        assert folder.make(target)
    assert folder.make("run")[-1] == f"{USETOOL} serve --config config.toml"
    assert folder.make("test")[-1] == ".venv/bin/python -m pytest -q tests"


def spans() -> str:
    return "\n".join(re.findall(r"`([^`\n]+)`", prose(README)))


def test_the_request_shown_gets_the_answer_shown(gateway: Gateway) -> None:
    done = gateway.folder.run(gateway.here(shown("sh", "curl")))
    assert done.returncode == 0, done.stderr
    answer, promised = json.loads(done.stdout), json.loads(shown("json", "choices"))
    assert holds(answer, promised), answer
    assert {"id", "usage", "model"} <= answer.keys()


@pytest.mark.parametrize(
    ("whole", "part", "fits"),
    [
        ({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]}, True),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, False),
        ({"a": []}, {"a": [{}]}, False),
        ({"b": 1}, {"a": None}, False),
    ],
)
def test_the_comparison_can_fail(whole: Any, part: Any, fits: bool) -> None:
    assert holds(whole, part) is fits


def test_the_python_shown_runs(gateway: Gateway) -> None:
    program = gateway.here(shown("python", "openai"))
    program, count = re.subn(r'model="[^"]+"', 'model="demo"', program)
    assert count == 1
    (gateway.folder.path / "ask.py").write_text(
        f"{program}\nprint(answer.choices[0].message.content)", "utf-8"
    )
    done = gateway.folder.run(f"{shlex.quote(sys.executable)} ask.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_model_the_python_asks_for_is_served_once_its_key_is_there() -> None:
    named = re.findall(r'model="([^"]+)"', "".join(blocks(README, "python")))
    (exported,) = commands("export")
    keys = re.findall(r"\w+_API_KEY", shown("sh", "export"))
    environment = dict.fromkeys(keys, "k")
    found = config.parse(text("config.toml"), environment=environment)
    assert exported.startswith(f"export {keys[0]}=")
    for name in named:
        meant = PublicNames(found.models).meant(name)
        assert meant
        assert not found.upstreams[found.models[meant.id].upstream].missing()
    for key in keys:
        assert f'"env:{key}"' in text("config.toml")


def test_explain_shows_what_would_be_sent(folder: Folder) -> None:
    (command,) = commands(f"{USETOOL} explain")
    done = folder.usetool(command)
    assert done.returncode == 0, done.stderr
    assert "get_weather" in done.stdout


def test_check_shows_every_model_and_what_is_missing(folder: Folder) -> None:
    (command,) = commands(f"{USETOOL} check")
    done = folder.usetool(f"{command} --from-docker")
    assert done.returncode == 1, done.stderr  # models without their keys
    found = config.parse(text("config.toml"), environment={})
    assert "--from-docker" in spans()
    assert "host.docker.internal:8000/v1" in done.stdout
    for model in found.models:
        assert model in done.stdout, model
    assert "ANTHROPIC_API_KEY" in done.stdout


def test_last_shows_a_request_that_went_by_and_the_commands_that_repeat_it(
    gateway: Gateway, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {"usetool last", "usetool last ID", "--curl"} <= set(spans().splitlines())
    gateway.folder.run(gateway.here(shown("sh", "curl")))
    place = f"--url http://127.0.0.1:{gateway.port}/v1"
    listed = gateway.folder.usetool(f"usetool last {place}")
    identity = re.search(r"req_\w+", listed.stdout)
    assert identity, listed
    settings = ["--config", str(gateway.folder.path / "config.toml"), *place.split()]
    capsys.readouterr()
    assert main(["last", identity[0], *settings]) == FINE
    whole = capsys.readouterr().out
    assert "Shenyang" in whole
    assert "curl" not in whole
    assert main(["last", identity[0], "--curl", *settings]) == FINE
    assert re.search(r"^curl .*chat/completions", capsys.readouterr().out, re.MULTILINE)


def test_import_writes_a_config(folder: Folder) -> None:
    assert "usetool import litellm config.yaml" in spans().splitlines()
    (folder.path / "config.yaml").write_text(
        "model_list:\n- model_name: gpt\n  litellm_params:\n    model: openai/gpt-5\n"
        "    api_key: os.environ/OPENAI_API_KEY\n",
        "utf-8",
    )
    done = folder.usetool("usetool import litellm config.yaml")
    assert done.returncode == 0, done.stderr
    assert "gpt" in config.parse(done.stdout, environment={"OPENAI_API_KEY": "k"}).models


def test_chat_tries_a_model(gateway: Gateway) -> None:
    assert "usetool chat" in spans().splitlines()
    place = f"--url http://127.0.0.1:{gateway.port}/v1"
    done = gateway.folder.usetool(f"usetool chat --model demo {place}", "Hello\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_pull_lists_what_it_fetches(folder: Folder) -> None:
    assert "usetool pull" in spans().splitlines()
    done = folder.usetool("usetool pull")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_completion_is_printed(folder: Folder) -> None:
    assert "usetool completion bash" in spans().splitlines()
    done = folder.usetool("usetool completion bash")
    assert done.returncode == 0, done.stderr
    assert "complete " in done.stdout


def test_usage_is_read_whether_or_not_a_gateway_runs(folder: Folder) -> None:
    assert "usetool usage" in spans().splitlines()
    done = folder.usetool("usetool usage")
    assert (done.returncode, done.stderr) == (0, "")


APP = """
import json, os, urllib.request
url, key = os.environ["OPENAI_BASE_URL"] + "/chat/completions", os.environ["OPENAI_API_KEY"]
body = b'{"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}'
headers = {"content-type": "application/json", "authorization": "Bearer " + key}
print(json.load(urllib.request.urlopen(urllib.request.Request(url, body, headers)))["choices"])
"""


def test_what_is_recorded_is_replayed(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder.path)
    monkeypatch.delenv("CI", raising=False)
    (folder.path / "app.py").write_text(APP, "utf-8")
    said = []
    for command in commands(f"{USETOOL} re"):
        words = [sys.executable if one == "python" else one for one in shlex.split(command)]
        assert main(words[1:]) == FINE
        said.append(capfd.readouterr().out)
    assert len(said) == 2
    assert said[0] == said[1] != ""


def test_init_writes_a_config_that_check_reads(folder: Folder) -> None:
    assert "usetool init" in spans().splitlines()
    (folder.path / "config.toml").unlink(missing_ok=True)
    assert folder.usetool("usetool init").returncode == 0
    assert folder.usetool("usetool init").returncode == 2  # it replaces nothing
    assert "no mistakes" in folder.usetool("usetool check --config config.toml").stdout


def test_every_usetool_command_is_one_that_is_run_here() -> None:
    named = re.findall(
        rf"(?:{re.escape(USETOOL)}|\busetool) (\w+)", spans() + "".join(blocks(README))
    )
    assert set(named) == {
        "chat",
        "check",
        "completion",
        "explain",
        "init",
        "import",
        "last",
        "pull",
        "record",
        "replay",
        "run",  # by tests/cli/launch
        "usage",
        "serve",
    }
