"""`usetool check` and `usetool models`: what a config means, has and lacks."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from middleware.cli.command import FINE, LACKING, add_configured, complain, say

if TYPE_CHECKING:
    from middleware.config import Config
    from middleware.server.models import ModelList, Status

_ABOUT = """\
Reads the config as `serve` does, and says what it means: each model with its abilities and the
adapters a request walks through, clients with their limits, environment variables of keys. An
Ollama is asked what it has, as at start; no other upstream is called. With --live each model is
asked for a word (up to 20 an upstream), and what is wrong is told with what to write.

Exit code: 0 all models can answer, 1 one of them lacks something, 2 the file has mistakes.
"""
_MODELS = """\
Lists a config's models and what they lack. GET /v1/models has those that can answer, one by one;
GET /v1/models?all=true the others too.
"""


def add(commands: Any) -> None:
    check = add_configured(commands, "check", "say what a config means and lacks", _ABOUT, run)
    check.add_argument("--live", action="store_true", help="ask each model for a word")
    check.add_argument(
        "--from-docker", action="store_true", help="print the address for clients in containers"
    )
    add_configured(commands, "models", "list the models", _MODELS, models)


def run(options: argparse.Namespace) -> int:
    import asyncio

    from middleware.cli import describe, tools
    from middleware.cli import live_check as probing
    from middleware.config import load

    config = load(options.config)
    if config.cassettes is not None:
        from middleware.cassettes.setup import studio_of

        studio_of(config, complain)  # raises for what only it can read
    models, statuses = _listed(config)
    say(describe.check(config, models, statuses, os.environ))
    well = not any(status.reason for status in statuses)
    if config.tools and (lacking := tools.missing(config)):
        say("\ntools that are not available\n  " + "\n  ".join(lacking))
    if options.from_docker:
        say(f"\n{describe.from_docker(config.server)}")
    if options.live:
        findings = asyncio.run(probing.probe(config, os.environ))
        say(f"\n{describe.findings(findings)}")
        well = well and all(finding.well for finding in findings)
    return FINE if well else LACKING


def models(options: argparse.Namespace) -> int:
    from middleware.cli import describe
    from middleware.config import load

    say(describe.models(_listed(load(options.config))[1]))
    return FINE


def _listed(config: Config) -> tuple[ModelList, list[Status]]:
    """A config's models, and which of them can answer as far as this machine knows."""
    import asyncio

    from adapters.wire.http import Transport
    from middleware.building import Shared, build
    from middleware.machine.memory import MemoryBoard
    from middleware.server.models import ModelList
    from middleware.state.memory import MemoryState
    from middleware.tools.shelf import open_shelf
    from middleware.wrappers.recall import MemoryStore

    async def ask() -> tuple[ModelList, list[Status]]:
        transport = Transport()
        # The nesting as it is, without opening the file.
        store = None if config.recall.store == "off" else MemoryStore()
        # Of tools only the tables are wanted: nothing is started.
        shelf = open_shelf(config, None, MemoryState(), complain)
        shared = Shared(MemoryBoard(), MemoryState(), shelf)
        models = ModelList(config, build(config, transport, store, shared))
        try:
            return models, await models.statuses(only_local=True)
        finally:
            await transport.close()

    return asyncio.run(ask())
