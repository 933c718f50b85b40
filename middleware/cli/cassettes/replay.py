"""`usetool replay`: answers from a cassette, without keys and without a network."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from middleware.cli import command
from middleware.cli.cassettes.options import add_common, folder_of, name_and_path
from middleware.cli.command import WRONG, Failed, WronglyUsed, complain

if TYPE_CHECKING:
    from middleware.cassettes.replay import Timing
    from middleware.cassettes.replay.faults import FaultRule
    from middleware.config import Config

_ABOUT = """\
Answers from a cassette what was recorded with `usetool record`. With a COMMAND it runs that with
its clients pointed here, and ends with its exit code, or 3 where an ask was missed, 4 where turns
stayed unused (--all-played), 5 where nothing was asked. Without one it listens until interrupted.

The model is replaced, not the world: tools that the application runs itself run for real, and
nothing is kept from the network but what this gateway would ask.
"""


def add(commands: Any) -> None:
    replay = command.add(commands, "replay", "answer from a cassette, offline", _ABOUT, run)
    replay.add_argument("name", metavar="NAME", help="the cassette, or a .yaml file")
    replay.add_argument(
        "--timing",
        default="fast",
        help="fast (default), recorded, or a factor: 10 is ten times as fast",
    )
    replay.add_argument(
        "--max-gap", type=float, metavar="SECONDS", help="the longest pause that is made"
    )
    replay.add_argument(
        "--serve",
        choices=("wire", "answer"),
        default="wire",
        help="answer from what upstreams sent (default), or from the stored answers",
    )
    replay.add_argument(
        "--strict-wire", action="store_true", help="what would be sent otherwise is an error"
    )
    replay.add_argument("--all-played", action="store_true", help="exit 4 if a turn stays unused")
    replay.add_argument(
        "--faults", metavar="FILE", help="faults to play, instead of NAME.faults.yaml"
    )
    add_common(replay)


def run(options: argparse.Namespace) -> int:
    from middleware.cassettes.replay.faults import FaultMistake
    from middleware.cassettes.report import UnknownReport, find_rendering
    from middleware.cassettes.setup import RunOptions
    from middleware.cli.cassettes.outcome import report_of
    from middleware.cli.cassettes.run import Run, conclude

    name, path = name_and_path(options)
    config = _config(options)
    try:
        if options.report:
            find_rendering(options.report)
        said = RunOptions(
            mode="replay",
            name=name,
            path=path,
            folder=str(folder_of(options)),
            timing=_timing(options),
            serves_answers=options.serve == "answer",
            strict_wire=options.strict_wire,
            config_answers=options.config is not None,
            faults=_faults(options),
        )
        played = Run(config, said, options.child)
        played.prepare()
    except (FaultMistake, UnknownReport) as error:
        complain(error)
        return WRONG
    played.go()
    report = report_of(played, ())
    return conclude(replace(report, all_played=options.all_played), options.report)


def _config(options: argparse.Namespace) -> Config:
    from middleware.cli.explain import load_without_keys
    from middleware.config import read

    server = {} if options.port is None else {"port": options.port}
    if options.config is not None:
        return load_without_keys(options.config, server)
    quiet = {"keep_last": 50, "log_level": "info"}
    return read({"server": {**quiet, **server}, "cassettes": {"mode": "replay"}}, "replay")


def _timing(options: argparse.Namespace) -> Timing:
    from middleware.cassettes.replay import Timing

    words = {"fast": 0.0, "recorded": 1.0}
    try:
        factor = words[options.timing] if options.timing in words else float(options.timing)
    except ValueError:
        factor = -1.0
    if not 0 <= factor < 1e6:
        raise WronglyUsed(
            f"--timing is '{options.timing}', but must be fast, recorded, or a factor."
        )
    return Timing(factor, options.max_gap)


def _faults(options: argparse.Namespace) -> tuple[FaultRule, ...]:
    from middleware.cassettes.replay.shelf import faults_of

    if options.faults is None:
        return ()
    try:
        return faults_of(Path(options.faults))
    except OSError as error:
        text = f"{options.faults}: cannot be read: {error.strerror or error}"
        raise Failed(text) from error
