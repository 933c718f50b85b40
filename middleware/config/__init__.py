"""config.toml → a frozen `Config`; every mistake named with its key."""

from middleware.config.access import is_loopback
from middleware.config.file import stamp
from middleware.config.hints import path_of, suggest
from middleware.config.public_names import Meant, PublicNames, public_name
from middleware.config.shape import (
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
    SpendingLimit,
    StateConfig,
    TelemetryConfig,
    ToolConfig,
    UpstreamConfig,
)
from middleware.config.source import load, parse, read

__all__ = (
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
    "SpendingLimit",
    "StateConfig",
    "TelemetryConfig",
    "ToolConfig",
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
