"""What `record` and `replay` have in common on the command line."""

from __future__ import annotations

import argparse
import os
import tomllib
from pathlib import Path

from middleware.cli.command import WronglyUsed
from middleware.cli.default_config import OWN, default_path

FOLDER = "cassettes"


def add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help=f"default: {default_path()}")
    add_folder(parser)
    parser.add_argument("--port", type=int, help="where to listen, if there is no COMMAND")
    parser.add_argument(
        "--report", metavar="FILE", help="write the report: .json, .xml (JUnit) or .md"
    )


def add_allow_live(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--allow-live", action="store_true", help="also where CI is set")


def heed_ci(options: argparse.Namespace) -> None:
    """Raise where a job would ask a provider by accident."""
    if os.environ.get("CI") and not options.allow_live:
        text = "CI is set, and a job must not ask a provider by accident: replay instead, or say "
        raise WronglyUsed(f"{text}--allow-live.")


def add_folder(parser: argparse.ArgumentParser) -> None:
    usual = f"default: [cassettes] folder, else {FOLDER}/"
    parser.add_argument("--dir", metavar="FOLDER", help=f"where the cassettes are; {usual}")


def folder_of(options: argparse.Namespace) -> Path:
    """Where the commands on files look."""
    return Path(options.dir or configured_folder())


def configured_folder() -> str:
    """What this folder's config says; one that cannot be read is no reason to fail."""
    try:
        folder = tomllib.loads(Path(OWN).read_text("utf-8"))["cassettes"]["folder"]
    except (OSError, ValueError, LookupError, TypeError):
        return FOLDER
    return folder if isinstance(folder, str) else FOLDER


def name_and_path(options: argparse.Namespace) -> tuple[str, Path | None]:
    """The cassette's name, and its file where it is given as one."""
    from middleware.cassettes.errors import CassetteRefused
    from middleware.cassettes.names import name_from, read_name

    path = Path(options.name) if options.name.endswith(".yaml") else None
    try:
        return read_name(path.stem if path else options.name).name, path
    except CassetteRefused as error:
        if path is None:
            raise WronglyUsed(error.message) from error
        return name_from(path.stem), path
