"""README.md and a folder with a gateway of it, as its tests share them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.documents.test_documents import blocks, text
from tests.support.paths import ROOT

README = text("README.md")
USETOOL = ".venv/bin/usetool"
RUN = shlex.join([sys.executable, "-m", "middleware"])


def shown(language: str, word: str) -> str:
    """The one block of a language that has the word."""
    (found,) = [block for block in blocks(README, language) if word in block]
    return found


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
            capture_output=True, text=True, check=False, timeout=300, encoding="utf-8",
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


def asked() -> str:
    """The body that the curl command sends."""
    return shlex.split(shown("sh", "curl"))[-1]
