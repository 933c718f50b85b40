"""A reader of the page on cassettes: in a folder of its own, with a provider that costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cassette.page import PROVIDER, Reader, served


@pytest.fixture(scope="session")
def provider() -> Iterator[str]:
    """The address of what is taken for a service with models."""
    with served(PROVIDER) as url:
        yield f"{url}/v1"


@pytest.fixture
def reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Reader:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    return Reader(tmp_path, capfd)
