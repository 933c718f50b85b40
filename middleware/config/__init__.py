"""config.toml → a frozen `Config`; every mistake named with its key."""

from middleware.config.access import is_loopback
from middleware.config.file import stamp
from middleware.config.hints import path_of, suggest
from middleware.config.loading import load, parse, read
from middleware.config.public_names import Meant, PublicNames, public_name
from middleware.config.shape import (
    Budget,
    CassetteMode,
    CassettesConfig,
    ClientConfig,
    Config,
    ConfigError,
    LedgerConfig,
    Mistake,
    ModelConfig,
    Secret,
    Server,
    StateConfig,
    TelemetryConfig,
    UpstreamConfig,
)

__all__ = (
    "Budget",
    "CassetteMode",
    "CassettesConfig",
    "ClientConfig",
    "Config",
    "ConfigError",
    "LedgerConfig",
    "Meant",
    "Mistake",
    "ModelConfig",
    "PublicNames",
    "Secret",
    "Server",
    "StateConfig",
    "TelemetryConfig",
    "UpstreamConfig",
    "is_loopback",
    "load",
    "parse",
    "path_of",
    "public_name",
    "read",
    "stamp",
    "suggest",
)
