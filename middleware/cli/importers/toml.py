"""Writes the little TOML a config needs, with room for comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def key(name: str) -> str:
    return name if _BARE.fullmatch(name) else text(name)


def text(value: str) -> str:
    # JSON's escapes are TOML's too, but for the one control character JSON lets through.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def value(given: Any) -> str:
    """A value on one line; what TOML cannot say (nothing, dates of YAML) becomes text."""
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, int | float):
        return repr(given)
    if isinstance(given, list | tuple):
        return f"[{', '.join(value(item) for item in given)}]"
    if isinstance(given, Mapping):
        pairs = [f"{key(str(name))} = {value(item)}" for name, item in given.items()]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    return text(str(given))


def table(names: Iterable[str], given: Mapping[str, Any], notes: Iterable[str] = ()) -> str:
    """A section with its comments above it; keys that say nothing are left out."""
    lines = [*(f"# {comment(note)}" for note in notes), f"[{'.'.join(map(key, names))}]"]
    said = {name: item for name, item in given.items() if item is not None and item != {}}
    return "\n".join([*lines, *(f"{key(name)} = {value(item)}" for name, item in said.items())])


def comment(note: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", note)
