"""What a leaf is built from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.wire.http import Link


@dataclass(frozen=True, slots=True)
class Settings:
    """One model's view of its upstream, as the config says it."""

    link: Link
    api_version: str | None = None
    abilities: Mapping[str, Any] = field(default_factory=dict)
    """What the config says the model can do; outranks every table and every answer."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Other keys of the model that its leaf understands."""
