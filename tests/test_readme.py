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
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from middleware import config
from middleware.__main__ import main
from middleware.cli.common import FINE
from middleware.config.keys import KINDS
from middleware.config.pipelines import is_named
from tests.support.paths import ROOT
from tests.test_documents import blocks, prose, text

pytestmark = pytest.mark.skipif(os.name == "nt", reason="its commands are for a POSIX shell")

README = text("README.md")
USETOOL = ".venv/bin/usetool"
RUN = shlex.join([sys.executable, "-m", "middleware"])


def shown(language: str, word: str) -> str:
    """The one block of a language that has the word."""
    (found,) = [block for block in blocks(README, language) if word in block]
    return found


def commands(word: str) -> list[str]:
    lines = "".join(blocks(README, "sh")).splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.startswith(word)]


@dataclass(frozen=True)
class Folder:
    """A folder as a reader has it, and an environment with no keys in it."""

    path: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path),
            "XDG_STATE_HOME": str(self.path / "state"),
            "PYTHONPATH": str(ROOT),
            "PYTHONUTF8": "1",
        }

    def run(self, command: str, said: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, shell=True, cwd=self.path, env=self.environment, input=said,
            capture_output=True, text=True, check=False, timeout=60, encoding="utf-8",
        )  # fmt: skip

    def usetool(self, command: str, said: str = "") -> subprocess.CompletedProcess[str]:
        return self.run(re.sub(rf"^(?:{re.escape(USETOOL)}|usetool)\b", RUN, command), said)

    def make(self, *goals: str) -> list[str]:
        """What make would do, line by line."""
        done = subprocess.run(
            ["make", "--dry-run", "--no-print-directory", *goals],
            cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (goals, done.stderr)
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    path = tmp_path_factory.mktemp("readme")
    (path / "config.toml").write_text(text("config.toml"), "utf-8")
    (path / "request.json").write_text(asked(), "utf-8")
    return Folder(path)


def asked() -> str:
    """The body that the curl command sends."""
    return shlex.split(shown("sh", "curl"))[-1]


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
        ups = [found.upstreams[one.upstream] for one in found.models.values()
               if is_named(name, one.id)]  # fmt: skip
        assert ups
        assert not ups[0].missing()
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


def test_every_usetool_command_is_one_that_is_run_here() -> None:
    named = re.findall(
        rf"(?:{re.escape(USETOOL)}|\busetool) (\w+)", spans() + "".join(blocks(README))
    )
    assert set(named) == {
        "chat",
        "check",
        "completion",
        "explain",
        "import",
        "last",
        "pull",
        "serve",
    }


# Config ----------------------------------------------------------------------------------------


def test_the_config_shown_is_read() -> None:
    (block,) = blocks(README, "toml")
    found = config.parse(f"[server]\nport = 8000\n{block}", environment={"RELAY_KEY": "k"})
    assert list(found.models) == ["relay/*"]
    assert found.models["relay/*"].upstream in found.upstreams


def test_every_kind_named_is_one_there_is() -> None:
    named = set(re.findall(r'`kind = "(\w+)"`', README))
    assert named >= {"claude", "deepseek", "ollama", "compatible", "longtail"}
    assert named <= KINDS.keys()


def outside_of_make() -> dict[str, str]:
    """The environment of a make that was started by hand, not by the one that runs these tests."""
    inner = ("MAKE", "MFLAGS", "PYTHON", "TESTS")
    return {name: value for name, value in os.environ.items() if not name.startswith(inner)}


OLD = """\
#!/bin/sh
case "$*" in
  --version) echo "Python 3.10.13" ;;
esac
"""


@pytest.mark.parametrize("goal", ["run", "test"])
@pytest.mark.parametrize(("python", "found"), [("./old", "is 3.10.13"), ("./none", "is not there")])
def test_a_python_that_is_too_old_is_one_line(
    goal: str, python: str, found: str, tmp_path: Path
) -> None:
    for name in ("Makefile", "requirements.lock", "requirements-dev.lock", "pyproject.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "old").write_text(OLD, "utf-8")
    (tmp_path / "old").chmod(0o755)
    done = subprocess.run(
        ["make", goal, f"PYTHON={python}"],
        cwd=tmp_path, env=outside_of_make(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    (line,) = (done.stdout + done.stderr).splitlines()
    assert f"needs Python 3.11 or newer, and '{python}' {found}. Write: make {goal} PYTHON=" in line
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize(
    ("made_by", "named", "anew"),
    [
        ("3.11", False, False),
        ("3.99", False, False),  # any that is new enough, whatever python3 is
        ("3.99", True, True),
        ("", False, True),  # too old, gone, or half there
    ],
)
def test_a_venv_of_another_python_is_made_anew(
    made_by: str, named: bool, anew: bool, tmp_path: Path
) -> None:
    for name in ("Makefile", "requirements.lock", "requirements-dev.lock", "pyproject.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\nprintf '{made_by}'\n", "utf-8")
    python.chmod(0o755)
    (tmp_path / ".venv/runtime").touch()
    command = ["make", "--dry-run", "run", *([f"PYTHON={sys.executable}"] if named else [])]
    environment = outside_of_make()
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "python3").symlink_to(sys.executable)
    environment["PATH"] = f"{folder}:{environment['PATH']}"
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert ("venv --clear .venv" in done.stdout) is anew
    assert ("--require-hashes" in done.stdout) is anew


def test_the_commands_without_make_are_those_of_make(folder: Folder) -> None:
    def alike(line: str) -> list[str]:
        words = line.replace("\\", "/").removesuffix(" --config config.toml").split()
        short = {"-r": "--requirement", "-e": "--editable", "python3": "python"}
        own = ("--no-compile", "--disable-pip-version-check", "--clear")  # of make's comfort alone
        return [short.get(word, word) for word in words if word not in own]

    (block,) = blocks(README, "text")
    made = folder.make("--always-make", "run", "OS=Windows_NT")
    assert [alike(line) for line in block.splitlines()] == [
        alike(line) for line in made if not line.startswith(("touch ", "echo "))
    ]
