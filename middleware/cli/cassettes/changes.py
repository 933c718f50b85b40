"""`usetool cassette redact`, `prune`, `export` and `import`: files made of files."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from middleware.cli import command
from middleware.cli.cassettes.files import readable, writable, write
from middleware.cli.cassettes.options import add_folder, folder_of
from middleware.cli.command import FINE, Failed, complain

_REDACT = """\
Takes a text out of a cassette, wherever it stands in asks, sendings and answers, and marks the
turns that had it. Personal data is not known by itself: this command, or [cassettes] redact, names
it.
"""
_PRUNE = """\
Drops the turns that none of the given runs played. The reports are what `usetool replay --report
FILE.json` wrote.
"""
_EXPORT = """\
Writes a cassette in another form: usetool (the same, in one form of writing), vcrpy, har; with
--slim without what upstreams sent, which still replays, from the stored answers.
"""
_IMPORT = """\
Makes a cassette of another tool's: vcrpy, cassetter, parsed_body (pydantic-ai). Chat completions
and embeddings become turns; what else is in it is named and left out.
"""


def add(commands: Any) -> None:
    redact = _editing(commands, "redact", "take a text out of a cassette", _REDACT, _redact)
    redact.add_argument("--value", action="append", default=[], help="a text")
    redact.add_argument("--path", action="append", default=[], help="a place in asks and answers")
    redact.add_argument("--pattern", action="append", default=[], help="a regular expression")
    prune = _editing(commands, "prune", "drop turns that nobody plays", _PRUNE, _prune)
    prune.add_argument("--report", nargs="+", required=True, metavar="FILE", help="JSON reports")
    export = _editing(commands, "export", "write a cassette in another form", _EXPORT, _export)
    export.add_argument("--slim", action="store_true", help="without what upstreams sent")
    export.add_argument("--to", choices=("usetool", "vcrpy", "har"), default="usetool")
    export.add_argument("-o", "--output", metavar="FILE", default="-", help="default: stdout")
    importing = command.add(commands, "import", "make a cassette of others'", _IMPORT, _import)
    importing.add_argument("format", choices=("vcrpy", "cassetter", "parsed_body"))
    importing.add_argument("file", metavar="FILE")
    importing.add_argument("name", metavar="NAME")
    add_folder(importing)


def _editing(
    commands: Any, name: str, summary: str, text: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser = command.add(commands, name, summary, text, run)
    parser.add_argument("name", metavar="NAME", help="a cassette, or a .yaml file")
    add_folder(parser)
    return parser


def _redact(options: argparse.Namespace) -> int:
    from middleware.cassettes.secrets import Redaction, redacted

    named = Redaction(tuple(options.value), tuple(options.path), tuple(options.pattern))
    if named == Redaction():
        raise Failed("Say what: --value, --path or --pattern.")
    with readable(options) as (path, cassette):
        try:
            made = redacted(cassette, named)
        except (re.error, ValueError) as error:
            raise Failed(f"A --path or --pattern cannot be one: {error}.") from error
        write(path, made)
    count = sum(turn.redacted for turn in made.turns)
    complain(f"{path.name}: {count} of {len(made.turns)} turns are marked as redacted.")
    return FINE


def _prune(options: argparse.Namespace) -> int:
    with readable(options) as (path, cassette):
        played = {turn for file in options.report for turn in _played(file)}
        kept = [turn for turn in cassette.turns if turn.number in played]
        dropped = len(cassette.turns) - len(kept)
        numbered = [replace(turn, number=number) for number, turn in enumerate(kept, 1)]
        if dropped and kept:
            write(path, replace(cassette, turns=tuple(numbered)))
    if not kept:
        raise Failed("The runs played no turn of it: nothing was changed. Remove the file itself.")
    complain(f"{path.name}: {dropped} turns dropped, {len(kept)} are left.")
    return FINE


def _played(file: str) -> Sequence[int]:
    try:
        found = json.loads(Path(file).read_text("utf-8"))
        return [turn for turn in found["played"] if isinstance(turn, int)]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise Failed(f"{file} is no report: write it with `--report FILE.json`.") from error


def _export(options: argparse.Namespace) -> int:
    from middleware.cassettes.bridges import slim, to_har, to_vcrpy
    from middleware.cassettes.file import cassette_text

    with readable(options) as (_, cassette):
        chosen = slim(cassette) if options.slim else cassette
        if options.to == "usetool" and options.output != "-":
            write(Path(options.output), chosen)
            return FINE
        writers = {"vcrpy": to_vcrpy, "har": to_har}
        write_as = writers.get(options.to)
        text = write_as(chosen) if write_as else cassette_text(chosen).text.decode()
    if options.output == "-":
        print(text, end="")
    else:
        with writable(Path(options.output)):
            Path(options.output).write_text(text, "utf-8")
    return FINE


def _import(options: argparse.Namespace) -> int:
    from middleware.cassettes.errors import CassetteRefused, UnreadableCassette
    from middleware.cassettes.names import file_of
    from middleware.cassettes.secrets import Blotter, blotted
    from middleware.cli.importers.recordings import from_recording

    try:
        path = file_of(folder_of(options), options.name)
        found = from_recording(Path(options.file).read_text("utf-8"), options.file)
    except (UnreadableCassette, CassetteRefused) as error:
        raise Failed(str(error)) from error
    except OSError as error:
        raise Failed(f"{options.file}: cannot be read: {error.strerror or error}") from error
    for remark in found.remarks:
        complain(remark)
    shapes = Blotter({})
    turns = [blotted(turn, shapes.turn()) for turn in found.cassette.turns]
    write(path, replace(found.cassette, turns=tuple(turns)))
    complain(f"{path}: {len(found.cassette.turns)} turns")
    return FINE
