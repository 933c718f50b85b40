"""`usetool record`: keeps what is asked and answered while a command, or a server, runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from middleware.cli import command
from middleware.cli.cassettes.options import add_allow_live, add_common, heed_ci, name_and_path
from middleware.cli.command import WRONG, WronglyUsed, complain
from middleware.cli.default_config import default_path

if TYPE_CHECKING:
    from middleware.cassettes.setup import RunOptions

_ABOUT = """\
Records what is asked and answered, to be answered again by `usetool replay`. With a COMMAND it
runs that with its clients pointed here; without one it listens until it is interrupted. Keys and
everything that looks like one are never written; personal data is, unless rules name it
([cassettes] redact, `usetool cassette redact`).

Exit code: the command's own, 4 if turns are not whole (an error, a stream that broke off), 5 if
nothing was asked, 2 where CI is set (a job must not record by accident) without --allow-live.
"""


def add(commands: Any) -> None:
    record = command.add(commands, "record", "record what is asked and answered", _ABOUT, run)
    record.add_argument("name", metavar="NAME", help="the cassette, or a .yaml file")
    record.add_argument(
        "--mode",
        choices=("record", "auto", "refresh"),
        default="record",
        help="record anew (default), add what is new (auto), or ask all again and keep what is "
        "the same as it is (refresh)",
    )
    record.add_argument("--only-good", action="store_true", help="leave failed turns out")
    record.add_argument("--keep-errors", action="store_true", help="failed turns are meant")
    record.add_argument(
        "--keep-retries", action="store_true", help="keep failures that a retry repaired too"
    )
    add_allow_live(record)
    record.add_argument("--large", action="store_true", help="allow a file of more than 50 MB")
    record.add_argument(
        "--lint",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="look for dates, ids and paths that will be others next time",
    )
    record.add_argument(
        "--check", action="store_true", help="run the COMMAND again in replay, and say what missed"
    )
    add_common(record)


def run(options: argparse.Namespace) -> int:
    heed_ci(options)
    if options.check and not options.child:
        raise WronglyUsed("--check runs the COMMAND again: there is none behind --.")
    return _record(options)


def _record(options: argparse.Namespace) -> int:
    from middleware.cassettes.errors import UnreadableCassette
    from middleware.cassettes.record.merge import Policy
    from middleware.cassettes.replay.faults import FaultMistake
    from middleware.cassettes.report import UnknownReport
    from middleware.cassettes.setup import RunOptions
    from middleware.cli.cassettes.outcome import report_of, with_lint
    from middleware.cli.cassettes.run import Run, conclude
    from middleware.config import load

    name, path = name_and_path(options)
    server = {} if options.port is None else {"port": options.port}
    config = load(options.config or default_path(), server=server)
    said = RunOptions(
        mode=options.mode,
        name=name,
        path=path,
        folder=options.dir or "",
        policy=Policy(options.keep_errors, options.only_good),
        keep_retries=options.keep_retries,
        large=options.large,
    )
    recording = Run(config, said, options.child)
    try:
        _look_first(recording.file, options.report)
        if options.mode == "auto":
            recording.prepare()
    except (UnknownReport, UnreadableCassette, FaultMistake) as error:
        complain(error)
        return WRONG
    recording.go()
    finished = recording.studio.recorder.finish()
    report = report_of(recording, finished)
    shelf = recording.studio.player.shelf
    if options.lint:
        report = with_lint(report, shelf, [shelf.path(one.name) for one in finished])
    code = conclude(report, options.report)
    if code or not options.check:
        return code
    return _checked(replace(said, mode="replay", folder=str(shelf.folder)), options.child)


def _look_first(file: Path, report: str | None) -> None:
    """Raise for what would be lost in the end; say what an earlier end left."""
    from middleware.cassettes.file import read_cassette
    from middleware.cassettes.record.parts import find_parts
    from middleware.cassettes.report import find_rendering
    from middleware.cli.cassettes.overview import told_part

    if report:
        find_rendering(report)
    if file.exists():  # what cannot be read is not replaced either
        read_cassette(file)
    for cassette, part in find_parts(file.parent):
        if cassette == file:
            complain(told_part(part))


def _checked(said: RunOptions, child: Sequence[str]) -> int:
    """Play what was recorded to the same command."""
    from middleware.cli.cassettes.outcome import report_of
    from middleware.cli.cassettes.run import Run, conclude
    from middleware.config import read

    config = read({"cassettes": {"mode": "replay"}}, "replay")
    playing = Run(config, said, child)
    playing.prepare()
    playing.go()
    return conclude(report_of(playing, ()), None)
