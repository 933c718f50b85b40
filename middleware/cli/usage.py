"""`usetool usage`: what was used, and what it cost."""

from __future__ import annotations

import argparse
import json
from datetime import date
from typing import Any

from middleware.cli.command import FINE, Failed, add_configured, say

_ABOUT = """\
Reads the ledger of the config ([ledger] url), whether or not the gateway runs: requests, tokens and
USD by model (who answered, else the one that was asked for), client, day or upstream ("-": none
was reached). Requests that a limit refused have no row.
"""


def add(commands: Any) -> None:
    usage = add_configured(commands, "usage", "show what was used and what it cost", _ABOUT, run)
    by = ("model", "client", "day", "upstream")
    usage.add_argument("--by", default="model", choices=by, help="what rows are of; default: model")
    usage.add_argument("--from", dest="since", type=_day, metavar="DAY", help="the first day, UTC")
    usage.add_argument("--to", dest="until", type=_day, metavar="DAY", help="the last day")
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


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        told = f"'{text[:40]}' has to be a day such as 2026-01-31"
        raise argparse.ArgumentTypeError(told) from None


def _cell(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value) or "-"
