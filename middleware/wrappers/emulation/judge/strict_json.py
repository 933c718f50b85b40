"""Strict JSON in what a model wrote, of no more values than anybody calls a tool with."""

from __future__ import annotations

import json
from typing import Any

from adapters.shared.marks import marks

MOST_VALUES = 60_000
"""As many as a request may have: each costs microseconds at every step to the client."""


def parse_strict(text: str) -> Any:
    """Read JSON, raw line ends in its texts too; raise ValueError where it is none."""
    require_few(text)
    try:
        return json.loads(text, strict=False)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def require_few(text: str) -> None:
    if sum(map(text.count, ",[{")) > MOST_VALUES and _values(text) > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES} values")


def _values(text: str) -> int:
    """Without what only looks like values in texts."""
    found = marks(text.encode("utf-8", "replace"))
    return len(found) - found.count(b"]")
