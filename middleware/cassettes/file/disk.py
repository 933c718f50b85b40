"""Cassettes on the disk: a file is read whole or refused, replaced whole or left as it was."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

from middleware.cassettes.cassette import FORMAT, Cassette, CassetteTurn
from middleware.cassettes.errors import CassetteRefused, UnreadableCassette
from middleware.cassettes.file.parser import MOST_BYTES, parse
from middleware.cassettes.file.printer import dump
from middleware.cassettes.file.references import Expander, Shortener
from middleware.cassettes.file.schema import Misshapen, checked
from middleware.cassettes.file.shape import said, turn_from_json, turn_to_json
from middleware.cassettes.file.sides import SidesIn, SidesOut, folder_of, is_side

_HEAD: Mapping[str, Any] = {"by": str, "recorded": str, "server": dict}
_TOP: Mapping[str, Any] = {"routes": dict, "facts": [dict], "match": dict, "diff": dict}
_CASSETTE: Mapping[str, Any] = {"usetool": {"cassette": int, **_HEAD}, **_TOP, "turns": list}
_LARGE, _TOO_LARGE = 2 << 20, 50 << 20


@dataclass(frozen=True, slots=True)
class CassetteText:
    """What is written of a cassette: its file, and by name those beside it."""

    text: bytes
    sides: Mapping[str, bytes]


def read_cassette(path: Path) -> Cassette:
    """Read a file; FileNotFoundError: it is not there, UnreadableCassette: it is no cassette."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        problem = f"{error.strerror}; expected a file that can be read"
        raise UnreadableCassette(str(path), problem) from None
    return parse_cassette(data, path)


def parse_cassette(data: bytes, path: Path) -> Cassette:
    """Read what a file holds, and those beside it."""
    document = parse(data, str(path))
    try:
        value = document.value
        if b"sha256:" in data:
            value = SidesIn(folder_of(path)).within(value)
        _check_format(value)
        top = checked(value, _CASSETTE, "cassette")
        head = top.pop("usetool")
        head.pop("cassette")
        turns = tuple(_turns(top.pop("turns", []), document.lines.get("turns", []), str(path)))
        facts = tuple(top.pop("facts", ()))
        return Cassette(turns=turns, facts=facts, **top, **head)
    except Misshapen as error:
        raise UnreadableCassette(str(path), str(error)) from None


def cassette_text(cassette: Cassette) -> CassetteText:
    """Make the same bytes of the same cassette; nothing is written yet."""
    shortener, sides = Shortener(), SidesOut()
    head = said({name: getattr(cassette, name) for name in _HEAD})
    top = said({name: getattr(cassette, name) for name in _TOP} | {"facts": [*cassette.facts]})
    turns = [shortener.shorten(turn_to_json(turn)) for turn in cassette.turns]
    text = dump(sides.without({"usetool": {"cassette": FORMAT, **head}, **top, "turns": turns}))
    return CassetteText(text.encode(), sides.files)


def write_cassette(path: Path, written: CassetteText, *, large: bool = False) -> str:
    """Replace a file and those beside it; return a warning, or nothing."""
    size = len(written.text)
    if size > (MOST_BYTES if large else _TOO_LARGE):
        most = f"{MOST_BYTES >> 20} MB are read" if large else "over 50 MB it needs --large"
        raise CassetteRefused(
            f"{path} would have {size / (1 << 20):.0f} MB, but {most}. Record less into one file: "
            "one test or scenario each.",
            code="cassette_too_large",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = folder_of(path)
    for name, data in written.sides.items():
        folder.mkdir(exist_ok=True)
        _replace(folder / name, data)
    _replace(path, written.text)
    _remove_sides(folder, written.sides)
    if size <= _LARGE:
        return ""
    return f"{path} has {size / (1 << 20):.1f} MB: one test or scenario a file keeps it readable."


def _remove_sides(folder: Path, used: Collection[str]) -> None:
    for other in folder.glob("*"):
        if is_side(other) and other.name not in used:
            other.unlink()
    with suppress(OSError):  # not there, or other files are in it
        folder.rmdir()


def _check_format(value: object) -> None:
    found: Any = value.get("usetool") if isinstance(value, dict) else None
    number = found.get("cassette") if isinstance(found, dict) else None
    if type(number) is not int:
        raise Misshapen("no number of its format; expected `usetool: {cassette: 1}` at the top")
    if number > FORMAT:
        by = f"usetool {found['by']}" if "by" in found else "a newer usetool"
        raise Misshapen(f"its format is {number}, which {by} reads; expected at most {FORMAT}")


def _turns(rows: list[object], lines: list[int], path: str) -> Iterator[CassetteTurn]:
    expander, numbers = Expander(), set[int]()
    for at, row in enumerate(rows):
        value = {"turn": at + 1, **row} if isinstance(row, dict) else row
        try:
            expander.expand(value)
        except Misshapen as error:
            raise UnreadableCassette(path, f"turn {at + 1}: {error}", lines[at]) from None
        turn = turn_from_json(value, path, lines[at])
        if turn.number in numbers or not turn.number:
            problem = f"turn: {turn.number}; expected a number of its own, from 1 on"
            raise UnreadableCassette(path, problem, lines[at])
        numbers.add(turn.number)
        yield turn


def _replace(path: Path, data: bytes) -> None:
    """Write beside, onto the disk, then put it in place: a crash leaves the old file."""
    if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
        return
    beside = path.with_name(f".{path.name}.{token_hex(4)}")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
