"""What a command is: how it is added, how it prints, and the codes it ends with."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, TextIO

from middleware.cli.default_config import default_path
from middleware.server.terminal import visible

FINE, LACKING, WRONG = 0, 1, 2
Run = Callable[[argparse.Namespace], int]


class Failed(Exception):
    """A command cannot go on; the text is for people."""

    code = LACKING


class WronglyUsed(Failed):
    """It cannot begin: what it was told cannot be meant."""

    code = WRONG


def add(commands: Any, name: str, summary: str, text: str, run: Run) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(command=run)
    return parser


def add_configured(
    commands: Any, name: str, summary: str, text: str, run: Run
) -> argparse.ArgumentParser:
    """A command that reads the config."""
    parser = add(commands, name, summary, text, run)
    usual = "default: config.toml of this folder, else the built-in one"
    parser.add_argument("--config", default=default_path(), metavar="FILE", help=usual)
    return parser


def say(text: object, file: TextIO | None = None) -> None:
    """Print for people: nothing that a client or an upstream wrote steers the terminal."""
    print(visible(str(text)), file=file or sys.stdout)


def complain(text: object) -> None:
    say(text, sys.stderr)
