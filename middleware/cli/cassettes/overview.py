"""`usetool cassette ls`: what is in a folder of cassettes, and what a crash left there."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from middleware.cli import command
from middleware.cli.cassettes.options import add_folder, folder_of
from middleware.cli.command import FINE, say

if TYPE_CHECKING:
    from middleware.cassettes.cassette import Cassette

_ABOUT = """\
Lists cassettes: name, day, turns, size, models, and what is to be known of them. A recorder that
was killed leaves a part; --recover makes a cassette of what was whole in it.
"""


def add(commands: Any) -> None:
    listing = command.add(
        commands, "ls", "list cassettes, and parts of killed recorders", _ABOUT, run
    )
    listing.add_argument("--recover", action="store_true", help="make cassettes of the parts")
    add_folder(listing)


def run(options: argparse.Namespace) -> int:
    from middleware.cassettes.record.parts import find_parts
    from middleware.cli.describe import columns

    folder = folder_of(options)
    rows = [*_rows(folder)]
    say(columns(rows, indent="") if rows else f"No cassettes are in {folder}/.")
    for cassette, part in find_parts(folder):
        say(_recovered(cassette, part) if options.recover else told_part(part))
    return FINE


def _rows(folder: Path) -> Iterator[tuple[str, ...]]:
    from middleware.cassettes.errors import UnreadableCassette
    from middleware.cassettes.file import read_cassette

    for path in sorted(folder.rglob("*.yaml")):
        if path.name.endswith(".faults.yaml"):
            continue
        name = path.relative_to(folder).with_suffix("").as_posix()
        try:
            cassette = read_cassette(path)
        except UnreadableCassette as error:
            yield name, "-", "-", "-", f"cannot be read: {error}"
            continue
        size = f"{path.stat().st_size / 1024:.0f} KB"
        yield name, cassette.recorded, f"{len(cassette.turns)} turns", size, _about(cassette)


def _about(cassette: Cassette) -> str:
    marks = {
        "not whole": any(not turn.is_whole for turn in cassette.turns),
        "redacted": any(turn.redacted for turn in cassette.turns),
    }
    models = dict.fromkeys(turn.model for turn in cassette.turns)
    return ", ".join(filter(None, [*models, *_named(marks.items())]))


def _named(marks: Iterable[tuple[str, bool]]) -> list[str]:
    return [f"({name})" for name, there in marks if there]


def told_part(part: Path) -> str:
    """What a recorder left that was killed."""
    from middleware.cassettes.record.parts import read_parts

    count = len(read_parts([part]).turns)
    return (
        f"{part.name}: a part of a recorder that was killed, with {count} whole turns: "
        "`usetool cassette ls --recover` makes a cassette of it."
    )


def _recovered(cassette: Path, part: Path) -> str:
    from middleware.cassettes.file import cassette_text, write_cassette
    from middleware.cassettes.record.finish import cassette_of
    from middleware.cassettes.record.merge import USUAL, merged
    from middleware.cassettes.record.parts import read_parts

    found = merged(None, cassette_of(read_parts([part])), "record", USUAL).cassette
    if found is None:
        part.unlink()
        return f"{part.name}: there was no whole turn in it."
    target = next(path for path in _targets(cassette) if not path.exists())
    try:
        write_cassette(target, cassette_text(found), large=True)
    except OSError as error:
        return f"{part.name}: {target.name} cannot be written: {error.strerror or error}"
    part.unlink()
    return f"{target.name}: {len(found.turns)} turns of {part.name}"


def _targets(cassette: Path) -> Iterator[Path]:
    """Its own name if that is free, and then others."""
    yield cassette
    yield cassette.with_name(f"{cassette.stem}.recovered.yaml")
    for number in count(2):
        yield cassette.with_name(f"{cassette.stem}.recovered-{number}.yaml")
