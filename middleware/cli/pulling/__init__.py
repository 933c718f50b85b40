"""`usetool pull`: fetches a GGUF file for the embedded model."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from middleware.server.terminal import visible

_ABOUT = """\
Fetches a better model for `local` into the user's cache, and prints the lines of config that name
it. NAME is one of the list below, OWNER/REPO:FILE.gguf of Hugging Face, or the URL of a GGUF file.
A transfer that broke off goes on where it stopped; what arrived is checked by the hub's sha256.
Where a model of kind "local" has no `path`, it takes the file that was pulled last.

HF_ENDPOINT names a mirror, HF_TOKEN a token for models that ask for one (it is sent to the hub
alone), HTTPS_PROXY a proxy. Without NAME it prints the list.

Exit code: 0 it is there, 1 it could not be fetched, 2 NAME means nothing.
"""
_FINE, _FAILED, _WRONG, _INTERRUPTED = 0, 1, 2, 130


def add(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "pull",
        help="fetch a better model for `local`",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a model of the list, OWNER/REPO:FILE, or a URL"
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    from middleware.cli.pulling import naming
    from middleware.cli.pulling.pull import Failed, pull, told
    from middleware.cli.pulling.screen import Bar

    if options.name is None:
        sys.stdout.write(naming.listed() + "\n")
        return _FINE
    bar = Bar(sys.stderr)
    try:
        pulled = pull(naming.find(options.name), bar)
    except naming.Unknown as error:
        return _end(bar, str(error), _WRONG)
    except Failed as error:
        return _end(bar, str(error), _FAILED)
    except KeyboardInterrupt:
        return _end(bar, "Stopped. The same command goes on from here.", _INTERRUPTED)
    bar.end()
    sys.stdout.write(told(pulled) + "\n")
    return _FINE


def _end(bar: Any, words: str, code: int) -> int:
    bar.end()
    sys.stderr.write(visible(words) + "\n")
    return code
