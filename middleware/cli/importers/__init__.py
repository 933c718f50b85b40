"""`usetool import`: a config from another gateway's."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from middleware.cli import command
from middleware.cli.command import FINE, LACKING, WRONG, complain

_ABOUT = """\
Writes a config.toml from another gateway's config, and lists on stderr what it could not carry,
with the reason. Keys stay in the environment: one that is written out in the file is not copied.

Exit code: 0 all was carried, 1 something was not, 2 nothing was written.
"""


def add(commands: Any) -> None:
    summary = "write a config from another gateway's"
    came = command.add(commands, "import", summary, _ABOUT, run)
    came.add_argument("format", choices=["litellm"], help="whose config it is")
    came.add_argument("file", help="the config of LiteLLM's proxy, in YAML")
    came.add_argument("-o", "--output", metavar="FILE", help="where to write; default: stdout")
    came.add_argument("--force", action="store_true", help="write over a file that is there")


def run(options: argparse.Namespace) -> int:
    from middleware.cli.importers.collecting import Unreadable, lost_lines
    from middleware.cli.importers.litellm import from_litellm_file

    output = Path(options.output) if options.output else None
    if output and output.exists() and not options.force:
        complain(f"{output} is there already: choose another name, or --force.")
        return WRONG
    try:
        found = from_litellm_file(options.file, os.environ)
        _write(found.text, output)
    except Unreadable as error:
        complain(error)
        return WRONG
    except BrokenPipeError:
        raise
    except OSError as error:
        complain(f"{error.filename or output}: {error.strerror}")
        return WRONG
    complain(f"{_counted(len(found.models))} written to {output or 'stdout'}.")
    if lost := lost_lines(found.lost):
        complain("\n  ".join(["Not carried:", *lost]))
    return LACKING if lost else FINE


def _counted(models: int) -> str:
    return "1 model" if models == 1 else f"{models} models"


def _write(text: str, output: Path | None) -> None:
    if output is None:
        print(text, end="")
    else:
        output.write_text(text, "utf-8")
