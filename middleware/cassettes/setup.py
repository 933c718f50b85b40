"""What a config's `[cassettes]` or a command says → the studio of a gateway."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

from adapters.kind import all_kinds
from middleware.cassettes.cassette import Mode
from middleware.cassettes.record.finish import RecorderSettings
from middleware.cassettes.record.merge import USUAL, Policy
from middleware.cassettes.record.recorder import Recorder
from middleware.cassettes.replay import FAST, Timing
from middleware.cassettes.replay.faults import FaultRule
from middleware.cassettes.replay.player import Player
from middleware.cassettes.replay.shelf import Shelf
from middleware.cassettes.routes import reading_of, routes_of
from middleware.cassettes.secrets import Blotter, Redaction
from middleware.cassettes.studio import RECORDING, Studio, StudioSettings
from middleware.config import (
    CassettesConfig,
    Config,
    ConfigError,
    Mistake,
    Secret,
    UpstreamConfig,
)
from middleware.server.last.scrubbing import SENSITIVE

FOLDER = "cassettes"
_MODE = "USETOOL_MODE"
MODES: tuple[Mode, ...] = get_args(Mode)
_PATH = re.compile(r"(messages|tools|metadata|input|user)\b")
_NONE = CassettesConfig("off", FOLDER, (), (), None)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a command says; where it says nothing, the config counts."""

    mode: Mode | None = None
    """A server with one of its own allows a request no other."""
    name: str = "default"
    path: Path | None = None
    """The file of the name, where it is given as one."""
    folder: str = ""
    timing: Timing = FAST
    serves_answers: bool = False
    strict_wire: bool = False
    config_answers: bool = False
    """The config's routes, not the cassettes' own, read what was recorded."""
    faults: Sequence[FaultRule] = ()
    policy: Policy = USUAL
    keep_retries: bool = False
    large: bool = False
    run: str = ""


def studio_of(
    config: Config, say: Callable[[str], None], options: RunOptions | None = None
) -> Studio:
    options = options or RunOptions(name=os.environ.get("USETOOL_CASSETTE") or "default")
    said = config.cassettes or _NONE
    shelf = Shelf(
        Path(options.folder or said.folder),
        repeats=said.repeats,
        faults=tuple(options.faults),
        config=config if options.config_answers else None,
        own=options.name,
        given=options.path,
    )
    secrets = _secrets(config)
    recorder = Recorder(
        RecorderSettings(
            shelf.path,
            options.policy,
            options.keep_retries,
            options.large,
            options.run,
            reading_of(config),
        ),
        _blotter(config, secrets, said.redact),
        secrets,
        partial(routes_of, config),
        say,
    )
    player = Player(shelf, options.timing, options.serves_answers, options.strict_wire)
    configured = partial(settings_of, options=options)
    settings = configured(config)
    if settings.mode in RECORDING:
        all_kinds()  # which tell a turn's route: loaded later, they would hold requests up
    return Studio(settings, player, recorder, configured)


def settings_of(config: Config, options: RunOptions) -> StudioSettings:
    said = config.cassettes or _NONE
    models = {one.id: one.cassettes for one in config.models.values() if one.cassettes}
    mode: Mode | None = options.mode
    allow: Sequence[str] = ()
    if mode is None:
        mode, allow = _mode_outside(config), said.allow
    if mode is None:
        return StudioSettings(said.mode, options.name, allow, models)
    live = {name: own for name, own in models.items() if own == "live"}
    return StudioSettings(mode, options.name, allow, live)


def records(config: Config) -> bool:
    """Whether a server with this config records what nobody asked it to."""
    said = settings_of(config, RunOptions())
    return not RECORDING.isdisjoint((said.mode, *said.models.values()))


def _secrets(config: Config) -> dict[str, str]:
    """All that opens something, by its name; what a header says beside is no secret."""
    named = {key.value: key.variable or "USETOOL_KEY" for key in config.client_keys}
    for upstream in config.upstreams.values():
        usual = f"{upstream.id}_KEY"
        named |= {one.value: one.variable or usual for one in _opening(upstream)}
    return {value: name for value, name in named.items() if value}


def _opening(upstream: UpstreamConfig) -> Iterator[Secret]:
    yield from filter(None, (*upstream.api_keys, upstream.proxy))
    for name, secret in upstream.headers.items():
        if secret.variable or SENSITIVE.search(name.lower()):
            yield secret


def _blotter(config: Config, secrets: Mapping[str, str], said: Sequence[str]) -> Blotter:
    """Of `redact` what looks like a path into an ask is one; all else is a pattern."""
    paths = tuple(one for one in said if _PATH.match(one))
    patterns = tuple(one for one in said if one not in paths)
    try:
        return Blotter(secrets, Redaction(paths=paths, patterns=patterns))
    except (ValueError, re.error) as error:
        text = f"has neither a path nor a pattern: {error}."
        raise ConfigError(config.source, (Mistake("cassettes.redact", text),)) from error


def _mode_outside(config: Config) -> Mode | None:
    """The environment's, which counts more than all that the config says."""
    named = os.environ.get(_MODE)
    if not named:
        return None
    for mode in MODES:
        if mode == named:
            return mode
    text = f"{_MODE} is '{named}' in the environment, but must be one of {', '.join(MODES)}."
    raise ConfigError(config.source, (Mistake("cassettes.mode", text),))
