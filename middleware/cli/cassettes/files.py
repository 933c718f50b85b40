"""The file a command is about: found, read, written."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from middleware.cli.cassettes.options import folder_of
from middleware.cli.command import Failed, complain

if TYPE_CHECKING:
    from middleware.cassettes.cassette import Cassette


@contextmanager
def readable(options: argparse.Namespace) -> Iterator[tuple[Path, Cassette]]:
    """The cassette of NAME; what is wrong with it ends the command."""
    from middleware.cassettes.errors import CassetteRefused, UnreadableCassette
    from middleware.cassettes.file import read_cassette
    from middleware.cassettes.names import file_of

    try:
        path = file_of(folder_of(options), options.name)
        yield path, read_cassette(path)
    except FileNotFoundError as error:
        raise Failed(f"There is no {error.filename}.") from error
    except (UnreadableCassette, CassetteRefused) as error:
        raise Failed(str(error)) from error


def write(path: Path, cassette: Cassette, large: bool = True) -> None:
    from middleware.cassettes.file import cassette_text, write_cassette

    with writable(path):
        if remark := write_cassette(path, cassette_text(cassette), large=large):
            complain(remark)


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """A disk that is full, or not ours, ends the command."""
    try:
        yield
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror or error}") from error
