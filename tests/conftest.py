"""What every test runs under: the same examples on every machine, on every run."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("usetool", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("usetool")
