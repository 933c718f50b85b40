"""What config.toml becomes: frozen, checked, with every secret out of sight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from adapters.kind import Auth, Kind, known_kind

Tools = Literal["auto", "native", "emulated"]
CassetteMode = Literal["off", "replay", "record", "auto", "refresh"]
Pick = Literal["order", "weight", "latency", "busy", "cost"]
Period = Literal["hour", "day", "week", "month", "total"]
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
    workers: int
    doors: tuple[str, ...]
    ollama_port: int | None
    ollama_version: str


@dataclass(frozen=True, slots=True)
class UpstreamConfig:
    """A service we call."""

    id: str
    kind: str
    base_url: str
    api_keys: tuple[Secret, ...]
    """Several are used in rotation; none: it is open, or finds its keys itself."""
    auth: Auth
    proxy: Secret | None
    api_version: str | None
    headers: Mapping[str, Secret]
    timeouts: Mapping[str, float]
    """Only what differs from the defaults of `adapters.wire.http.Timeouts`."""
    options: Mapping[str, Any]
    max_concurrent: int | None
    """Calls at once on each key."""
    queue: float
    """Seconds a request waits for a free slot."""

    @property
    def api_key(self) -> Secret | None:
        """The key, if there is one alone."""
        return self.api_keys[0] if len(self.api_keys) == 1 else None

    @property
    def rotation(self) -> tuple[Secret, ...]:
        """Its keys, if there are several; one whose variable is not set is empty."""
        return self.api_keys if len(self.api_keys) > 1 else ()

    @property
    def language(self) -> Kind:
        """What is known of its kind."""
        return known_kind(self.kind)

    def secrets(self) -> tuple[Secret, ...]:
        given = (*self.api_keys, self.proxy, *self.headers.values())
        return tuple(secret for secret in given if secret is not None and not secret.of_client)

    @property
    def of_client(self) -> bool:
        """Whether each client opens it with a key of its own."""
        return self.api_key is not None and self.api_key.of_client

    def missing(self) -> tuple[str, ...]:
        """The environment variables it needs that are not set; of several keys one is enough."""
        unset = [secret for secret in self.secrets() if not secret.value]
        if any(key.value for key in self.rotation):
            unset = [secret for secret in unset if secret not in self.rotation]
        return tuple(secret.variable for secret in unset)


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
    fallback: tuple[str, ...]
    """Models asked in order when this one fails before its first word."""
    choices: tuple[str, ...]
    """What it is made of; empty for a model of one upstream, and for a pipeline."""
    pick: Pick
    weights: tuple[float, ...]
    """One a choice; empty: all the same."""
    sticky: bool
    price: Mapping[str, float] | None
    """USD a million tokens, where the gateway is wrong about it."""
    context_length: int | None
    server_tools: tuple[str, ...] = ()
    """Tables, ids and patterns over ids of tools that are run for it."""
    max_rounds: int = 8
    steps: bool | str = False
    takeover: tuple[str, ...] = ()
    """Names of tools that are run here if clients declare them."""


Stamp = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class RecallConfig:
    """Where memories are kept; the keys are explained in `keys.RECALL`."""

    store: str
    path: str | None
    max_bytes: int
    max_age: float


class SpendingLimit(NamedTuple):
    """What a client may spend."""

    amount: float
    """USD."""
    period: Period
    """Of the calendar, in UTC."""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Somebody who may call, and how much."""

    id: str
    key: Secret
    models: tuple[str, ...]
    """Names and patterns; empty: all."""
    requests_per_minute: int | None
    tokens_per_minute: int | None
    concurrent: int | None
    budget: SpendingLimit | None
    admin: bool
    cassettes: tuple[str, ...]
    """Names and patterns of cassettes it may name."""


@dataclass(frozen=True, slots=True)
class StateConfig:
    """Where counters, rests and budgets are kept; the keys are explained in `keys.STATE`."""

    url: str | None
    folder: str | None
    secret: Secret | None


@dataclass(frozen=True, slots=True)
class LedgerConfig:
    """Where usage is written; the keys are explained in `keys.LEDGER`."""

    url: str | None


@dataclass(frozen=True, slots=True)
class TelemetryConfig:
    """What is told to a collector; the keys are explained in `keys.TELEMETRY`."""

    otlp: str | None
    service_name: str
    log_bodies: bool


@dataclass(frozen=True, slots=True)
class CassettesConfig:
    """What is recorded and replayed; the keys are explained in `keys.CASSETTES`."""

    mode: CassetteMode
    folder: str
    allow: tuple[str, ...]
    redact: tuple[str, ...]
    repeats: str | None


@dataclass(frozen=True, slots=True)
class ToolConfig:
    """Tools the gateway runs; the keys, many of one kind alone, are explained in `tools.py`."""

    id: str
    kind: str
    enabled: bool
    timeout: float
    max_result: int
    calls_per_request: int
    calls_per_minute: int | None
    clients: tuple[str, ...]
    """Empty: all."""
    defaults: Mapping[str, Any]
    strict: bool
    overrides: Mapping[str, Mapping[str, Any]]
    name: str | None = None
    description: str | None = None
    parameters: Mapping[str, Any] | None = None
    module: str | None = None
    functions: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    method: str = "GET"
    url: str | None = None
    headers: Mapping[str, Secret] = field(default_factory=dict)
    body: str | None = None
    max_bytes: int = 1 << 20
    allow: tuple[str, ...] = ()
    api_key: Secret | None = None
    base_url: str | None = None
    upstream: str | None = None
    command: tuple[str, ...] | None = None
    env: Mapping[str, Secret] = field(default_factory=dict)
    cwd: str | None = None


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
    clients: Mapping[str, ClientConfig] = field(default_factory=dict)
    state: StateConfig = StateConfig(None, None, None)
    ledger: LedgerConfig = LedgerConfig(None)
    telemetry: TelemetryConfig = TelemetryConfig(None, "usetool", False)
    tools: Mapping[str, ToolConfig] = field(default_factory=dict)

    @property
    def asks_keys(self) -> bool:
        """Whether a client must send a key of the gateway's own."""
        return bool(self.server.keys or self.clients)

    @property
    def client_keys(self) -> tuple[Secret, ...]:
        """All that open the gateway."""
        return (*self.server.keys, *(client.key for client in self.clients.values()))


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
