"""The garbage collector as the server has it, while time is measured."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collecting_as_the_server_does() -> Iterator[None]:
    """Seldom, and without a look at what was there before: see `serving`."""
    gc.collect()
    gc.freeze()
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 50)
    yield
    gc.set_threshold(*before)
