"""`usetool last`: what was sent and answered."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from middleware.cli.command import FINE, WRONG, add_configured, complain, say

_ABOUT = """\
Asks the running gateway for the requests it keeps ([server] keep_last). Without an ID it lists
them; with one it prints the client's body, each upstream's body and answer, the receipt and the
times; with --curl the commands that repeat both sides. Secrets are never shown: commands take them
from the shell's variables.
"""


def add(commands: Any) -> None:
    last = add_configured(commands, "last", "show what was sent and answered", _ABOUT, run)
    last.add_argument("id", nargs="?", metavar="ID", help="a request, as errors and logs name it")
    last.add_argument("--curl", action="store_true", help="print commands that repeat both sides")
    last.add_argument(
        "--cassette", metavar="FILE", help="write it as a recording for `usetool replay`"
    )
    last.add_argument("--force", action="store_true", help="write over a file that is there")
    last.add_argument("--url", default="", help="address of another gateway than the config's")
    last.add_argument("--key", default="", help="a client's key, instead of the config's")


def _write(found: dict[str, Any], path: Path) -> None:
    from middleware.cassettes.cassette import Cassette
    from middleware.cassettes.file import turn_from_json
    from middleware.cli.cassettes.files import write

    turn = turn_from_json(found.pop("turn"), str(path))
    cassette = Cassette(turns=(turn,), **{**found, "facts": tuple(found["facts"])})
    write(path, cassette)
    complain(f"{path}: one turn. usetool replay {path} -- COMMAND answers from it.")


def run(options: argparse.Namespace) -> int:
    from middleware.cli import kept_requests
    from middleware.config import load

    gateway = kept_requests.endpoints(load(options.config), options.url, options.key)
    if options.id is None:
        say(kept_requests.listing(gateway))
    elif options.cassette is not None:
        path = Path(options.cassette)
        if path.exists() and not options.force:
            complain(f"{path} is there already: choose another name, or --force.")
            return WRONG
        _write(kept_requests.fetch_cassette(gateway, options.id), path)
    else:
        record = kept_requests.fetch(gateway, options.id)
        show = kept_requests.commands if options.curl else kept_requests.details
        say(show(record))
    return FINE
