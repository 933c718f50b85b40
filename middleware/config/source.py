"""Reads config.toml: the file, its TOML, and what it says."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from adapters.options import Environment
from middleware.config import hints
from middleware.config.file import stamp, unreadable
from middleware.config.places import Places
from middleware.config.reading import ConfigReading, Values
from middleware.config.shape import Config, ConfigError, Mistake


def load(
    path: str | Path,
    *,
    server: Mapping[str, Any] | None = None,
    environment: Environment = os.environ,
) -> Config:
    """Read a config file; `server` holds what the command line says of that section."""
    source = str(path)
    read = stamp(path)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        hint = " (--config FILE names another)" if isinstance(error, FileNotFoundError) else ""
        raise _of_file(source, f"cannot be read: {error.strerror or error}{hint}") from error
    except UnicodeDecodeError as error:
        raise _of_file(source, "is not UTF-8 text; save it as UTF-8") from error
    config = parse(text, source=source, server=server, environment=environment)
    return replace(config, stamp=read)


def parse(
    text: str,
    *,
    source: str = "config.toml",
    server: Mapping[str, Any] | None = None,
    environment: Environment = os.environ,
) -> Config:
    try:
        found = tomllib.loads(text)
    except ValueError as error:  # a number of thousands of digits is no TOMLDecodeError
        raise _of_file(
            source, f"is not valid TOML: {error}{hints.toml_hint(str(error))}"
        ) from error
    except RecursionError as error:
        raise _of_file(source, "is nested deeper than anybody can read") from error
    if server and isinstance(found.setdefault("server", {}), dict):
        found["server"].update(server)
    said = frozenset(("server", name) for name in server or ())
    return _checked(ConfigReading(environment, Places(text), said), found, source)


def read(found: Values, source: str) -> Config:
    """Read values that stand in no file of their own."""
    return _checked(ConfigReading({}, Places("")), found, source)


def _checked(reading: ConfigReading, found: Values, source: str) -> Config:
    for at, why in unreadable(found):
        reading.wrong(at, why)
    config = None if reading.mistakes else reading.config(found, source)
    if config is None or reading.mistakes:
        told = sorted(reading.mistakes, key=lambda one: (not one.line, one.line))
        raise ConfigError(source, tuple(told))
    return config


def _of_file(source: str, text: str) -> ConfigError:
    return ConfigError(source, (Mistake("", text),))
