"""What config.toml becomes: frozen, checked, with every secret out of sight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from adapters.kind import Auth, Kind, known_kind

Tools = Literal["auto", "native", "emulated"]
CassetteMode = Literal["off", "replay", "record", "auto", "refresh"]
Reasoning = Literal["reasoning_content", "reasoning", "think-tags", "hidden"]


@dataclass(frozen=True, slots=True)
class Secret:
    """A key that no repr, log line or error text shows."""

    value: str = field(repr=False)
    """Empty if the environment variable is not set."""
    variable: str = ""
    """The environment variable it comes from."""
    of_client: bool = False
    """It is the key each client sends."""
    alike: str = ""
    """A variable that is set and has nearly the same name, if its own is not."""


@dataclass(frozen=True, slots=True)
class Server:
    """How the gateway itself listens; the keys are explained in `keys.SERVER`."""

    host: str
    port: int
    keys: tuple[Secret, ...]
    strict: bool
    history_repair: bool
    heartbeat: float
    max_body: int
    max_concurrent: int
    cors_origins: tuple[str, ...]
    hosts: tuple[str, ...]
    keep_last: int
    log_level: str


@dataclass(frozen=True, slots=True)
class UpstreamConfig:
    """A service we call."""

    id: str
    kind: str
    base_url: str
    api_key: Secret | None
    auth: Auth
    proxy: Secret | None
    api_version: str | None
    headers: Mapping[str, Secret]
    timeouts: Mapping[str, float]
    """Only what differs from the defaults of `adapters.wire.http.Timeouts`."""
    options: Mapping[str, Any]

    @property
    def language(self) -> Kind:
        """What is known of its kind."""
        return known_kind(self.kind)

    def secrets(self) -> tuple[Secret, ...]:
        given = (self.api_key, self.proxy, *self.headers.values())
        return tuple(secret for secret in given if secret is not None and not secret.of_client)

    @property
    def of_client(self) -> bool:
        """Whether each client opens it with a key of its own."""
        return self.api_key is not None and self.api_key.of_client

    def missing(self) -> tuple[str, ...]:
        """The environment variables it needs that are not set."""
        return tuple(secret.variable for secret in self.secrets() if not secret.value)


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A model clients can ask for."""

    id: str
    """Its public name; a `*` stands for any text."""
    upstream: str
    name: str
    """The upstream's name for it; a `*` is what the client wrote in its place."""
    tools: Tools
    defaults: Mapping[str, Any]
    override: Mapping[str, Any]
    drop: tuple[str, ...]
    retry: int
    """How often a call that failed before its first word is made again."""
    abilities: Mapping[str, Any]
    options: Mapping[str, Any]
    recall: bool
    reasoning: Reasoning | None
    pipeline: Mapping[str, Any]
    """What is said of a pipeline; empty for a model of one upstream."""
    cassettes: str | None
    """A mode of cassettes of its own."""
    coming: tuple[str, ...]
    """What it asks for and this version cannot do."""


Stamp = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class RecallConfig:
    """Where memories are kept; the keys are explained in `keys.RECALL`."""

    store: str
    path: str | None
    max_bytes: int
    max_age: float


@dataclass(frozen=True, slots=True)
class CassettesConfig:
    """What is recorded and replayed; the keys are explained in `keys.CASSETTES`."""

    mode: CassetteMode
    folder: str
    allow: tuple[str, ...]
    redact: tuple[str, ...]
    repeats: str | None


@dataclass(frozen=True, slots=True)
class Config:
    source: str
    """The file it was read from."""
    server: Server
    recall: RecallConfig
    upstreams: Mapping[str, UpstreamConfig]
    models: Mapping[str, ModelConfig]
    cassettes: CassettesConfig | None = None
    """None: requests that name a cassette are refused."""
    stamp: Stamp = None
    """Of the file when it was read."""
    timeouts: Mapping[str, float] = field(default_factory=dict)
    """What is said of all upstreams."""


class Mistake(NamedTuple):
    """One thing in the file that cannot be meant."""

    key: str
    """The path of the key, as it would be written in TOML; empty for the file as a whole."""
    text: str
    """What was found, what is allowed, what to write instead."""
    line: int = 0
    """Where in the file; 0: it is not said."""


class ConfigError(Exception):
    """All mistakes of a file at once."""

    def __init__(self, source: str, mistakes: tuple[Mistake, ...]) -> None:
        super().__init__(source, mistakes)
        self.source = source
        self.mistakes = mistakes

    def __str__(self) -> str:
        return "\n".join(
            ": ".join(filter(None, (f"{self.source}:{line}" if line else self.source, key, text)))
            for key, text, line in self.mistakes
        )
