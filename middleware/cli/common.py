"""What the commands share: their exit codes, how they are added, and how they print."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

from middleware.server.terminal import visible

if TYPE_CHECKING:
    from middleware.config import Config
    from middleware.routing import Routes
    from middleware.server.models import ModelList, Status

FINE, LACKING, WRONG = 0, 1, 2
Run = Callable[[argparse.Namespace], int]


def add(commands: Any, name: str, summary: str, text: str, run: Run) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=run)
    return parser


def add_configured(
    commands: Any, name: str, summary: str, text: str, run: Run
) -> argparse.ArgumentParser:
    """A command that reads the config."""
    parser = add(commands, name, summary, text, run)
    parser.add_argument(
        "--config", default="config.toml", metavar="FILE", help="default: config.toml"
    )
    return parser


def say(text: object, file: TextIO | None = None) -> None:
    """Print for people: nothing that a client or an upstream wrote steers the terminal."""
    print(visible(str(text)), file=file or sys.stdout)


def complain(text: object) -> None:
    say(text, sys.stderr)


def routes_of(config: Config) -> Routes:
    from adapters.wire.http import Transport
    from middleware.building import build

    return build(config, Transport())


def listing(config: Config) -> tuple[ModelList, list[Status]]:
    """A config's models, and which of them can answer as far as this machine knows."""
    import asyncio
    from dataclasses import replace

    from adapters.wire.http import Transport
    from middleware.building import build
    from middleware.server.models import ModelList

    async def ask() -> tuple[ModelList, list[Status]]:
        transport = Transport()
        forgetful = replace(config, recall=replace(config.recall, store="off"))
        models = ModelList(config, build(forgetful, transport))
        try:
            return models, await models.statuses(only_local=True)
        finally:
            await transport.close()

    return asyncio.run(ask())
