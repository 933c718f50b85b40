"""What a recorder has heard so far, a turn at a time beside the cassette: a crash loses only the
turn that was being answered, and what ended in the last moment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO

import orjson

from adapters.protocol import Json
from middleware.cassettes.record.lines import TurnRow, read_turn
from middleware.cassettes.record.offers import joined_routes, offer_name

_MARK = ".part-"
_MOST_LINE = 64 << 20
_BUFFER = 1 << 20


@dataclass(slots=True)
class Part:
    """One writer's; its lines are `{run …}`, `{route …}`, `{fact …}` and turns, which may have
    bodies behind them.
    """

    path: Path
    file: IO[bytes]
    models: dict[str, set[str]] = field(default_factory=dict)
    """Those whose routes are in it, with the server tools they were offered."""
    server: Json | None = None
    """What was written last of how asks are read."""
    facts: int = 0
    """How many facts were known when they were last written."""

    def is_news(self, model: str, offers: Sequence[Json]) -> bool:
        """Whether the routes of a model are still to be written."""
        if not offers and model in self.models:
            return False
        names = {*map(offer_name, offers)}
        if model in self.models and names <= self.models[model]:
            return False
        self.models[model] = self.models.get(model, set()) | names
        return True

    def tell(self, said: Json) -> None:
        self.file.write(orjson.dumps(said, option=orjson.OPT_APPEND_NEWLINE))

    def close(self) -> None:
        with suppress(OSError):
            self.file.close()

    def remove(self) -> None:
        self.close()
        with suppress(OSError):  # its disk is gone
            self.path.unlink()


def new_part(cassette: Path) -> Part:
    """One for a recorder alone: another of this process, or one before it, may have the first."""
    cassette.parent.mkdir(parents=True, exist_ok=True)
    own = f"{cassette.name}{_MARK}{os.getpid()}"
    for number in count(1):
        path = cassette.with_name(own if number == 1 else f"{own}-{number}")
        with suppress(FileExistsError):
            return Part(path, path.open("xb", _BUFFER))
    raise AssertionError("numbers do not end")


def find_parts(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Each cassette with a part that nobody writes any more; this process does not record yet."""
    for path in sorted(folder.rglob(f"*.yaml{_MARK}*")):
        name, _, writer = path.name.rpartition(_MARK)
        process = writer.partition("-")[0]
        if process == str(os.getpid()) or not is_running(process):
            yield path.with_name(name), path


def parts_of(folder: Path, run: str) -> dict[Path, list[Path]]:
    """Of one run, by cassette; all that wrote them have finished."""
    found: dict[Path, list[Path]] = {}
    for path in sorted(folder.rglob(f"*.yaml{_MARK}*")):
        if read_parts([path]).run == run:
            found.setdefault(path.with_name(path.name.rpartition(_MARK)[0]), []).append(path)
    return found


def is_running(process: str) -> bool:
    if not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


@dataclass(slots=True)
class PartContent:
    run: str = ""
    mode: str = "record"
    server: Json | None = None
    turns: list[Json | TurnRow] = field(default_factory=list)
    routes: dict[str, Json] = field(default_factory=dict)
    facts: list[Json] = field(default_factory=list)


def read_parts(paths: Sequence[Path]) -> PartContent:
    """What is whole in them; what was being written is left out."""
    found = PartContent()
    known: set[str] = set()
    for path in paths:
        with open(path, "rb") as lines:
            while line := lines.readline(_MOST_LINE):
                with suppress(orjson.JSONDecodeError, EOFError):
                    _take(found, _read(line, lines), known)
    return found


def _read(line: bytes, lines: IO[bytes]) -> Json | TurnRow:
    said = orjson.loads(line)
    return read_turn(said, lines) if isinstance(said, list) or "bodies" in said else said


def _take(found: PartContent, line: Json | TurnRow, known: set[str]) -> None:
    if isinstance(line, TurnRow):
        _take_turn(found, line, line.id, known)
    elif "run" in line:
        found.run, found.mode = line["run"], line["mode"]
        found.server = lenient(found.server, line["server"])
    elif "route" in line:
        found.routes = joined_routes(found.routes, [(line["route"], line["is"])])
    elif "fact" in line:
        found.facts.append(line["fact"])
    else:
        _take_turn(found, line, line["id"], known)


def _take_turn(found: PartContent, turn: Json | TurnRow, identity: str, known: set[str]) -> None:
    if identity not in known:  # two parts may hold the same turn
        known.add(identity)
        found.turns.append(turn)


def lenient(known: Mapping[str, object] | None, new: Mapping[str, object]) -> Json:
    """What of [server] reads the asks of both, where the config changed between them."""
    if known is None:
        return {**new}
    both = known.keys() & new.keys()
    return {name: True for name in (*known, *new) if name == "history_repair" or name in both}
