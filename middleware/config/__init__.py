"""config.toml → a frozen `Config`; every mistake named with its key."""

from middleware.config.access import is_loopback
from middleware.config.file import stamp
from middleware.config.hints import path_of, suggest
from middleware.config.public_names import Meant, PublicNames
from middleware.config.reading import load, parse, read
from middleware.config.shape import (
    CassetteMode,
    CassettesConfig,
    Config,
    ConfigError,
    Mistake,
    ModelConfig,
    Secret,
    Server,
    UpstreamConfig,
)

__all__ = (
    "CassetteMode",
    "CassettesConfig",
    "Config",
    "ConfigError",
    "Meant",
    "Mistake",
    "ModelConfig",
    "PublicNames",
    "Secret",
    "Server",
    "UpstreamConfig",
    "is_loopback",
    "load",
    "parse",
    "path_of",
    "read",
    "stamp",
    "suggest",
)
