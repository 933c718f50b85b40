"""Garbage is collected as seldom as in the server while time is measured."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def collecting_as_the_server_does() -> Iterator[None]:
    """See `serving`: the collector runs seldom there."""
    gc.collect()
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 50)
    yield
    gc.set_threshold(*before)
