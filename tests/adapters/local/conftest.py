"""The embedded model's process in a folder of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.local.machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
