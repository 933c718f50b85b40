"""`usetool cassette diff`: which decisions changed, in a new recording or with another model."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from middleware.cli.cassettes.options import add_allow_live, heed_ci
from middleware.cli.command import WRONG, add_configured, complain, say
from middleware.server.terminal import visible

_ABOUT = """\
Compares decisions, turn by turn: same, worded (only in other words), changed (the same tools, other
arguments), different (other tools, another ending, a refusal), broken (an error, or what does not
fit its schema where it did). With NEW it compares two cassettes; with --against it asks a model
every recorded ask, each with its recorded history. Answers are kept, so nothing is paid twice.

Exit code: 0, 1 if a turn is as bad as --fail-on, 2 if nothing was compared (or a model would be
asked where CI is set, without --allow-live), 6 if more questions failed than --allow-errors.
"""
_FORMATS = ("text", "markdown", "json", "junit")
_FAILING = ("worded", "changed", "different", "broken")


def add(commands: Any) -> None:
    diff = add_configured(commands, "diff", "compare decisions with a recording's", _ABOUT, run)
    diff.add_argument("old", metavar="OLD", help="a cassette: its name, or a .yaml file")
    diff.add_argument("new", metavar="NEW", nargs="?", help="another one, to compare it with")
    diff.add_argument("--dir", default="cassettes", metavar="FOLDER", help="default: cassettes")
    diff.add_argument("--format", choices=_FORMATS, default="text")
    diff.add_argument("-o", "--output", metavar="FILE", help="where to write; default: stdout")
    diff.add_argument("--rules", metavar="FILE", help="YAML with ignore, near and text")
    diff.add_argument("--fail-on", choices=_FAILING, default="different", help="exit 1 from it on")
    live = diff.add_argument_group("asking a model instead of reading NEW")
    live.add_argument("--against", metavar="MODEL", help="a model of the config")
    add_allow_live(live)
    live.add_argument("-n", type=_count, default=1, help="how often each ask is asked")
    live.add_argument("--baseline", action="store_true", help="weigh the recorded model's noise")
    live.add_argument("--sample", **_MOST, help="only so many turns")
    live.add_argument("--max-requests", **_MOST)
    live.add_argument("--max-tokens-total", **_MOST)
    live.add_argument("--allow-errors", type=int, default=0, metavar="N", help="that may fail")


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("1 or more")
    return number


_MOST: Mapping[str, Any] = {"type": _count, "default": math.inf, "metavar": "N"}


def run(options: argparse.Namespace) -> int:
    from adapters.errors import GatewayError
    from middleware.cassettes.diff.formats import FORMATS
    from middleware.cassettes.errors import UnreadableCassette
    from middleware.cli.cassettes.comparison import compared

    if (options.new is None) == (options.against is None):
        complain("Name either NEW, another cassette, or --against MODEL.")
        return WRONG
    if options.against:
        heed_ci(options)
    try:
        found = compared(options)
        if not found.turns:
            complain("There is nothing to compare.")
            return WRONG
        text = FORMATS[options.format](found)
        if options.output:
            Path(options.output).write_text(f"{visible(text)}\n", "utf-8")
    except OSError as error:
        complain(f"{error.filename or options.output}: {error.strerror}")  # a full disk names none
        return WRONG
    except (UnreadableCassette, GatewayError) as error:
        complain(error)
        return WRONG
    if not options.output:
        say(text)
    return found.exit
