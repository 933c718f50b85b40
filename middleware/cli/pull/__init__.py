"""`usetool pull`: fetches a GGUF file for the embedded model."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from middleware.cli import command
from middleware.cli.command import FINE, LACKING, WRONG, complain

_ABOUT = """\
Fetches a better model for `local` into the user's cache, and prints the lines of config that name
it. NAME is one of the list below, OWNER/REPO:FILE.gguf of Hugging Face, or the URL of a GGUF file.
A transfer that broke off goes on where it stopped; what arrived is checked by the hub's sha256.
Where a model of kind "local" has no `path`, it takes the file that was pulled last.

HF_ENDPOINT names a mirror, HF_TOKEN a token for models that ask for one (it is sent to the hub
alone), HTTPS_PROXY a proxy. Without NAME it prints the list.

Exit code: 0 it is there, 1 it could not be fetched, 2 NAME means nothing.
"""
_INTERRUPTED = 130


def add(commands: Any) -> None:
    parser = command.add(commands, "pull", "fetch a better model for `local`", _ABOUT, run)
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a model of the list, OWNER/REPO:FILE, or a URL"
    )


def run(options: argparse.Namespace) -> int:
    from middleware.cli.pull import naming
    from middleware.cli.pull.screen import Bar
    from middleware.cli.pull.transfer import pull, told
    from middleware.cli.pull.web import PullFailed

    if options.name is None:
        sys.stdout.write(naming.listed() + "\n")
        return FINE
    bar = Bar(sys.stderr)
    try:
        pulled = pull(naming.find(options.name), bar)
    except naming.Unknown as error:
        return _end(bar, str(error), WRONG)
    except PullFailed as error:
        return _end(bar, str(error), LACKING)
    except KeyboardInterrupt:
        return _end(bar, "Stopped. The same command goes on from here.", _INTERRUPTED)
    bar.end()
    sys.stdout.write(told(pulled) + "\n")
    return FINE


def _end(bar: Any, words: str, code: int) -> int:
    bar.end()
    complain(words)
    return code
