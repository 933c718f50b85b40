"""`usetool cassette refresh`: asks a recording again, and keeps it unless a decision changed."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

from middleware.cli.cassettes.files import readable, write
from middleware.cli.cassettes.options import add_allow_live, add_folder, heed_ci
from middleware.cli.command import FINE, LACKING, add_configured, complain

if TYPE_CHECKING:
    from middleware.cassettes.cassette import Cassette

_ABOUT = """\
Asks every recorded ask again, each with its recorded history, and writes what is answered now;
what is the same stays as it is, to the byte. If a decision changed (other tools, other arguments,
another ending, an error) nothing is written: from that turn on the application has to be run again.

Exit code: 0, 1 if a decision changed, 2 where CI is set, without --allow-live.
"""


def add(commands: Any) -> None:
    refresh = add_configured(commands, "refresh", "ask a recording again", _ABOUT, run)
    refresh.add_argument("name", metavar="NAME", help="a cassette, or a .yaml file")
    add_allow_live(refresh)
    add_folder(refresh)


def run(options: argparse.Namespace) -> int:
    from middleware.cassettes.record.again import ask_again
    from middleware.cassettes.record.merge import USUAL, merged
    from middleware.config import load

    heed_ci(options)
    config = load(options.config)
    with readable(options) as (path, cassette):
        now = asyncio.run(ask_again(config, cassette))
        if changed := _first_change(cassette, now):
            complain(f"{path.name}: {changed} Nothing was written.")
            return LACKING
        result = merged(cassette, now, "refresh", USUAL)
        if result.cassette is not None:
            write(path, result.cassette)
    complain(f"{path.name}: {'written anew' if result.cassette else 'nothing changed'}")
    return FINE


def _first_change(old: Cassette, now: Cassette) -> str:
    from middleware.cassettes.diff.rules import read_diff_rules
    from middleware.cassettes.diff.verdict import verdict

    rules = read_diff_rules(old.diff, "diff")
    for before, after in zip(old.turns, now.turns, strict=True):
        word = verdict(before.body, before.answer, after.answer, rules).word
        if word not in ("same", "worded"):
            return (
                f"turn {before.number} is {word}: from it on, run the application again "
                "(usetool record NAME --mode refresh -- COMMAND)."
            )
    return ""
