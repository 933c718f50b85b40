"""What a session recorded becomes the cassette: merged with what was there, searched, written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from adapters.protocol import Json
from middleware import __version__
from middleware.cassettes.cassette import Cassette
from middleware.cassettes.errors import CassetteRefused, UnreadableCassette
from middleware.cassettes.file import (
    CassetteText,
    cassette_text,
    read_cassette,
    turn_from_json,
    write_cassette,
)
from middleware.cassettes.record.lines import TurnRow, raw_of
from middleware.cassettes.record.lock import locked
from middleware.cassettes.record.merge import USUAL, Policy, merged
from middleware.cassettes.record.parts import PartContent, read_parts
from middleware.cassettes.record.turns import turn_of
from middleware.cassettes.secrets import leaks

_NO_SECRETS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class RecorderSettings:
    path: Callable[[str], Path]
    """Where the cassette of a name is."""
    policy: Policy = USUAL
    keep_retries: bool = False
    large: bool = False
    run: str = ""
    """Parts of one run are made one cassette by whoever started it; empty: by this recorder."""
    server: Json = field(default_factory=dict)
    """What of [server] changes how asks are read."""


class Finished(NamedTuple):
    """What became of one cassette."""

    name: str
    turns: int = 0
    """How many it has now."""
    recorded: int = 0
    not_whole: tuple[tuple[int, str], ...] = ()
    problem: str = ""
    remark: str = ""


def finish_parts(
    name: str,
    paths: list[Path],
    settings: RecorderSettings,
    secrets: Mapping[str, str] = _NO_SECRETS,
) -> Finished:
    """Make the parts of one run the cassette; they are gone once it is written.

    `secrets` are searched for once more, unless the parts were.
    """
    path = settings.path(name)
    try:
        found = read_parts(paths)
        with locked(path):
            old = read_cassette(path) if path.exists() else None
            new = cassette_of(found, settings.keep_retries)
            result = merged(old, new, found.mode, settings.policy)
            remark = _write(path, result.cassette, settings, secrets) if result.cassette else ""
    except (OSError, UnreadableCassette, CassetteRefused) as error:
        if isinstance(error, _Leak):
            _remove(paths)
        return Finished(name, problem=f"{path.name} was not written: {error}")
    _remove(paths)
    there = result.cassette or old or Cassette()
    return Finished(name, len(there.turns), len(new.turns), result.not_whole, remark=remark)


class _Leak(CassetteRefused):
    """What was recorded has a secret in clear: nothing of it stays."""


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _write(
    path: Path, cassette: Cassette, settings: RecorderSettings, secrets: Mapping[str, str]
) -> str:
    made = cassette_text(cassette)
    if found := in_clear(made, secrets):
        raise _Leak(f"it would have held {told_clear(found)}")
    return write_cassette(path, made, large=settings.large)


def in_clear(made: CassetteText, secrets: Mapping[str, str]) -> list[str]:
    """The secrets that a second search finds in what would be written."""
    return leaks(b"\n".join([made.text, *made.sides.values()]), secrets)


def told_clear(names: Sequence[str]) -> str:
    return f"{', '.join(names)} in clear"


def cassette_of(found: PartContent, keep_retries: bool = False) -> Cassette:
    """The turns in the order in which they came, session by session."""
    turns = [
        replace(turn_of(raw_of(turn), keep_retries), at=turn.at)
        if isinstance(turn, TurnRow)
        else turn_from_json(turn, "a part of a recording")
        for turn in found.turns
    ]
    turns.sort(key=lambda turn: (turn.session, turn.at))
    return Cassette(
        turns=tuple(turns),
        routes=found.routes,
        facts=tuple(found.facts),
        by=__version__,
        recorded=time.strftime("%Y-%m-%d"),
        server=found.server or {},
    )
