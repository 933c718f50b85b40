"""What README.md says of the config and of Python is so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.kind import kind_names
from middleware import config
from tests.documents.readme import README, Folder
from tests.documents.test_documents import blocks
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="its commands are for a POSIX shell")


# Config ----------------------------------------------------------------------------------------


def test_the_config_shown_is_read() -> None:
    tools, several, relay = blocks(README, "toml")
    found = config.parse(f"[server]\nport = 8000\n{relay}", environment={"RELAY_KEY": "k"})
    assert list(found.models) == ["relay/*"]
    assert found.models["relay/*"].upstream in found.upstreams
    shipped = (ROOT / "config.toml").read_text("utf-8")  # which has its models
    found = config.parse(f"{shipped}\n{several}", environment={"SHOP_KEY": "k"})
    assert found.models["best"].fallback == ("deepseek",)
    found = config.parse(f"{shipped}\n{tools}", environment={})
    assert found.models["secretary"].server_tools == ("desk",)


def test_every_kind_named_is_one_there_is() -> None:
    named = set(re.findall(r'`kind = "(\w+)"`', README))
    assert named >= {"claude", "deepseek", "ollama", "compatible", "longtail"}
    assert named <= {*kind_names()}


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
