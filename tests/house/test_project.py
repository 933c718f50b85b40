"""What runs and what is tracked: no heavy import, hashed locks, no path of one machine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.import_rules import LOCKS
from tests.house.source import OURS
from tests.support.paths import ROOT

HEAVY = ("anthropic", "litellm", "openai")


def test_importing_everything_loads_no_heavy_package() -> None:
    names = [module.name for module in OURS]
    program = f"import sys, {', '.join(names)}\nprint(*{set(HEAVY)} & set(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (loaded.returncode, loaded.stdout) == (0, "\n"), loaded.stdout + loaded.stderr


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_lock_is_hashed_and_names_no_index(lock: Path) -> None:
    text = lock.read_text()
    assert not re.findall(r".*(?:://|--index|--find-links).*", text)
    assert not [line for line in text.splitlines() if "==" in line and not line.endswith("\\")]


def test_no_tracked_file_names_a_path_of_one_machine() -> None:
    pattern = r"(^|[^[:alnum:]_.])/(work|farm|root)/[[:alnum:]._-]"
    found = subprocess.run(
        ["git", "grep", "-nIE", "--untracked", pattern],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 1, found.stdout[:2000] + found.stderr
