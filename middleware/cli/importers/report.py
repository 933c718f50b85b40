"""What an import says of itself on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from middleware.cli.importers.collecting import Lost

_NAMES_SHOWN = 4


def lost_lines(lost: Iterable[Lost]) -> list[str]:
    """One line for each thing that was not carried; what is lost of many models stands once."""
    models: dict[tuple[str, str], list[str]] = {}
    for one in lost:
        models.setdefault((one.key, one.why), []).append(one.of)
    return [f"{key}{_of(names)}: {why}" for (key, why), names in models.items()]


def _of(names: list[str]) -> str:
    named = list(dict.fromkeys(filter(None, names)))
    if not named:
        return ""
    more = len(named) - _NAMES_SHOWN
    shown = named if more <= 1 else [*named[:_NAMES_SHOWN], f"{more} more"]
    return f" of {', '.join(shown)}"
