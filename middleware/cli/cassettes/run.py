"""One run of a gateway over a cassette: around a command, or until it is interrupted."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from middleware.cassettes.errors import CassetteMiss, CassetteRefused, UnreadableCassette
from middleware.cassettes.replay.shelf import overlay_of
from middleware.cassettes.report import RunReport, as_text, exit_code, rendered
from middleware.cassettes.setup import RunOptions, studio_of
from middleware.cassettes.studio import Studio
from middleware.cli.cassettes.environment import ChildRun, child_environment
from middleware.cli.command import WRONG, WronglyUsed, complain
from middleware.cli.launch.child import code_of
from middleware.cli.launch.gateway import private_gateway
from middleware.config import Config, LedgerConfig


@dataclass(slots=True)
class Run:
    """What is needed to run once, and what came of it."""

    config: Config
    options: RunOptions
    command: Sequence[str] = ()
    recorded: str = ""
    """The day of the cassette that is replayed."""
    turns: Sequence[int] = ()
    """Those it has at the beginning."""
    studio: Studio = field(init=False)
    file: Path = field(init=False)
    """The command's own cassette."""
    code: int | None = None
    """How the command ended."""
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.studio = studio_of(self.config, complain, self.options)
        try:
            self.file = self.studio.player.shelf.path(self.options.name)
        except CassetteRefused as error:
            raise WronglyUsed(error.message) from error
        if self.options.mode == "replay":
            self.config = _rehearsed(self.config)

    def prepare(self) -> None:
        """Load the command's cassette now, so that no request waits for it; raise `FaultMistake`
        for what the faults beside it cannot mean.
        """
        shelf = self.studio.player.shelf
        try:
            found = shelf.load(self.options.name)
            self.recorded = found.cassette.recorded
            self.turns = [turn.number for turn in found.turns]
            if any(turn.exchanges for turn in found.turns):
                asyncio.run(found.open_stage().performance(0))  # all that it imports, too
        except (CassetteMiss, UnreadableCassette):  # each ask will say so
            return
        if not self.options.faults:
            overlay_of(found.path)

    def go(self) -> None:
        """Serve until the command has ended, or somebody interrupts."""
        began = time.monotonic()
        if self.command:
            with private_gateway(self.config, self.studio) as address:
                self.code = code_of(self.command, self._environment(address))
        else:
            from middleware.server.transport.serving import serve

            with suppress(KeyboardInterrupt):
                serve(self.config, {}, self.studio)
        self.seconds = time.monotonic() - began

    def _environment(self, address: str) -> dict[str, str]:
        mode = self.options.mode or "off"
        run = ChildRun(address, self.options.name, mode, self.recorded)
        secrets = [secret for one in self.config.upstreams.values() for secret in one.secrets()]
        variables = [secret.variable for secret in secrets if secret.variable]
        return child_environment(os.environ, run, variables)


def _rehearsed(config: Config) -> Config:
    """Nothing is counted of what nobody pays for."""
    state, telemetry = replace(config.state, url="memory:"), replace(config.telemetry, otlp=None)
    return replace(config, state=state, ledger=LedgerConfig("off"), telemetry=telemetry)


def conclude(report: RunReport, file: str | None) -> int:
    """Tell people and programs what came of it; the exit code."""
    complain(as_text(report))
    if not file:
        return exit_code(report)
    try:
        Path(file).write_text(rendered(report, file), "utf-8")
    except OSError as error:
        complain(f"{file} cannot be written: {error.strerror or error}")
        return report.code or WRONG
    return exit_code(report)
