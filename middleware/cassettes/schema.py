"""What people write beside cassettes, held to a schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from adapters.shared.schema import mismatch


def fitting(said: Any, schema: Mapping[str, Any]) -> Any:
    """The value as JSON; raise `ValueError` with where and why it does not fit."""
    plain = json.loads(json.dumps(said, default=str))  # YAML has numbers as keys, and dates
    if fault := mismatch(plain, schema):
        raise ValueError(fault.removeprefix("$").lstrip(".: "))
    return plain
