"""What every test runs under: the same examples on every machine, on every run."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import settings

settings.register_profile("usetool", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("usetool")


@pytest.fixture(autouse=True, scope="session")
def _state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test finds or leaves memories of conversations, or models, in the user's own folders."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


def pytest_collection_finish() -> None:
    """Modules stay: looking through them again and again costs a quarter of the tests' time."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Time is measured first: what thousands of tests leave in memory makes it longer."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/linear/"))
