"""`usetool init`: a config of one's own."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from middleware.cli import command
from middleware.cli.command import FINE, WRONG, complain, say
from middleware.cli.default_config import OWN, built_in

_ABOUT = """\
Writes config.toml into this folder: the built-in config, every section explained, to be changed.
A file that is there already is left as it is.

Exit code: 0 it was written, 2 it was not.
"""
_NEXT = f"""\
{OWN} is written. It is read by every command that is run in this folder.
  usetool check    says what it means, and what is missing
  usetool serve    runs it; a change counts about a second after it is saved
  usetool run codex, usetool run claude    a client with a gateway of its own
Base URLs: http://127.0.0.1:8000/v1 for clients of OpenAI, http://127.0.0.1:8000 for those of
Anthropic and Ollama."""


def add(commands: Any) -> None:
    command.add(commands, "init", "write a config to change", _ABOUT, run)


def run(_options: argparse.Namespace) -> int:
    try:
        text = built_in().read_bytes()
        with Path(OWN).open("xb") as file:
            file.write(text)
    except FileExistsError:
        complain(f"{OWN} is there already, and is left as it is: change it, or move it away.")
        return WRONG
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}")
        return WRONG
    say(_NEXT)
    return FINE
