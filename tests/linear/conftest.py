"""Garbage is collected as seldom as in the server while time is measured."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.collector import collecting_as_the_server_does


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    with collecting_as_the_server_does():
        yield
