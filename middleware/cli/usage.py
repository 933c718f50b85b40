"""`usetool usage`: what was used, and what it cost."""

from __future__ import annotations

import argparse
import json
from datetime import date
from typing import Any

from middleware.cli.command import FINE, Failed, add_configured, say

_ABOUT = """\
Reads the ledger of the config ([ledger] url), whether or not the gateway runs: requests, tokens and
USD by model (who answered), client, day or upstream.
"""


def add(commands: Any) -> None:
    usage = add_configured(commands, "usage", "show what was used and what it cost", _ABOUT, run)
    usage.add_argument("--by", default="model", choices=("model", "client", "day", "upstream"))
    usage.add_argument("--from", dest="since", type=date.fromisoformat, metavar="DAY")
    usage.add_argument("--to", dest="until", type=date.fromisoformat, metavar="DAY")
    usage.add_argument("--json", action="store_true", help="print it for programs")


def run(options: argparse.Namespace) -> int:
    from middleware.accounts.ledger import LedgerAway, open_book
    from middleware.accounts.usage import UsageQuestion, usage_of
    from middleware.cli.describe import columns
    from middleware.config import load

    book = open_book(load(options.config))
    if book is None:
        raise Failed('There is no ledger: the config says [ledger] url = "off".')
    try:
        found = usage_of(book, UsageQuestion(options.by, options.since, options.until))
    except LedgerAway as error:
        raise Failed(f"The ledger cannot be read: {error}") from error
    if options.json:
        say(json.dumps(found))
        return FINE
    head = (options.by, "requests", "prompt", "cached", "written", "completion", "reasoning", "USD")
    rows = [*found["data"], {options.by: "total", **found["total"]}]
    say(columns([head, *(tuple(map(_cell, row.values())) for row in rows)], indent=""))
    return FINE


def _cell(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)
