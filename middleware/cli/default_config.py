"""Which config is read where none is named."""

from __future__ import annotations

import os
from pathlib import Path

OWN = "config.toml"
_PACKAGE = Path(__file__).parents[1]


def default_path() -> str:
    """This folder's own config, whatever is wrong with it; the built-in one if there is none."""
    shipped = built_in()
    return OWN if os.path.lexists(OWN) or not shipped.exists() else str(shipped)


def built_in() -> Path:
    """In the package if it is installed (setup.py puts it there), else in the repository."""
    packaged = _PACKAGE / "config" / "default.toml"
    return packaged if packaged.exists() else _PACKAGE.parent / OWN
