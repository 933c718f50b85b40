"""`usetool cassette …`: looks at files of recordings, checks, changes and compares them."""

from __future__ import annotations

import argparse
from typing import Any

from middleware.cli import command
from middleware.cli.cassettes import changes, diff, overview, refresh, show, verify

_ABOUT = """\
Looks at cassettes, the files that `usetool record` writes, checks, changes and compares them. NAME
may be the path of a .yaml file everywhere.
"""


def add(commands: Any) -> None:
    group: argparse.ArgumentParser = command.add(
        commands, "cassette", "look at recordings, check, change, compare them", _ABOUT, _help
    )
    inner = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for one in (overview, show, verify, changes, refresh, diff):
        one.add(inner)


def _help(_: argparse.Namespace) -> int:
    return command.WRONG  # argparse wants a command before
