"""Config → the adapter behind every model name: built once at start, looked up on each request."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from adapters.errors import BadRequest, UnknownModel
from adapters.leaf import Leaf
from adapters.protocol import Adapter
from adapters.wire.http import Link, Timeouts, Transport
from adapters.wire.settings import Settings
from middleware import __version__
from middleware.config import (
    Config,
    ConfigError,
    Mistake,
    ModelConfig,
    UpstreamConfig,
    is_named,
    path_of,
    suggest,
)
from middleware.wrappers.emulation import ToolSettings, with_tools
from middleware.wrappers.pipeline import Pipeline, ReasonThenAnswer, Show
from middleware.wrappers.pipeline.search import Tavily
from middleware.wrappers.recall import Limits, MemoryStore, Recall, SqliteStore, Store, foreign
from middleware.wrappers.retry import Budget, Retry
from middleware.wrappers.route import Absent, Route, Strict, changes

# What a pipeline's config and the pipeline itself call by the same name.
_SAID_ALIKE = frozenset(field.name for field in fields(Pipeline)) - {"search", "vision"}
TRY_IT = "`usetool check --live` tries it."
_KEYS = frozenset({"api_key", "authorization", "x-api-key", "api-key"})
_NAMES_SHOWN = 50
_NAME_SHOWN = 100
# What is learned of models is kept by their names, which behind a * are the client's words.
_LONGEST_NAME = 256
_HINTS = 3
# Shorter ones are stand-ins, and blotting them out would blot out words.
_SHORTEST_SECRET = 6


class ModelEntry(NamedTuple):
    """A line of the model list."""

    id: str
    owned_by: str
    available: bool
    reason: str
    """Why it is not available."""
    upstream: str
    nesting: tuple[str, ...]
    """The adapters a request walks through, outermost first."""


class _Wildcard(NamedTuple):
    before: str
    after: str
    id: str

    def carried(self, name: str) -> str:
        """What stands in place of the `*`; empty if the name does not fit."""
        if name.startswith(self.before) and name.endswith(self.after):
            return name[len(self.before) : len(name) - len(self.after)]
        return ""


class Routes:
    """Every model of a config, by name."""

    def __init__(
        self,
        routes: Mapping[str, Route | Absent],
        entries: Iterable[ModelEntry],
        store: Store | None = None,
    ) -> None:
        self.store = store
        self._routes = routes
        self._entries = tuple(entries)
        parts = [(*name.partition("*"), name) for name in routes if "*" in name]
        found = [_Wildcard(before, after, name) for before, _, after, name in parts]
        self._wildcards = sorted(found, key=lambda w: (-len(w.before), -len(w.after)))

    def find(self, name: str) -> Route | Absent:
        """Return what answers for a model: an exact name wins, then the longest before a `*`."""
        if (exact := self._routes.get(name)) is not None and "*" not in name:
            return exact
        if len(name) > _LONGEST_NAME:
            raise self._unknown(name)
        for wildcard in self._wildcards:
            if carried := wildcard.carried(name):
                return _bound(self._routes[wildcard.id], name, carried)
        raise self._unknown(name)

    def listing(self) -> tuple[ModelEntry, ...]:
        return self._entries

    def leaf(self, name: str) -> tuple[str, Leaf]:
        """Return the upstream's name of a model, and what speaks to that upstream."""
        found = self.find(name)
        if found.leaf is None:
            text = f"Model '{name}' is made of several models. Ask one of an upstream."
            raise BadRequest(text, param="model", code="unsupported_value")
        return found.name, found.leaf

    def _unknown(self, name: str) -> UnknownModel:
        name = name if len(name) <= _NAME_SHOWN else name[:_NAME_SHOWN] + "…"
        names = [entry.id for entry in self._entries]
        shown = ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
        hint = suggest(name, names) or self._carried(name)
        return UnknownModel(
            f"The model '{name}' does not exist here.{hint} There are: {shown}.", param="model"
        )

    def _carried(self, name: str) -> str:
        """The names under which upstreams with names of their own would be asked for this one."""
        there = {entry.id for entry in self._entries if entry.available}
        found = [
            f"'{one.before}{name}{one.after}'"
            for one in self._wildcards
            if one.id in there and one.before.endswith("/")
        ]
        return f" Did you mean {' or '.join(found[:_HINTS])}?" if found else ""


def _bound(route: Route | Absent, name: str, carried: str) -> Route | Absent:
    if isinstance(route, Absent):
        return Absent(name, route.reason)
    return replace(route, name=route.name.replace("*", carried))


def build(config: Config, transport: Transport, store: Store | None = None) -> Routes:
    """Make every adapter a config asks for; what cannot be made says why when it is asked.

    A store that is given is used instead of a new one.
    """
    wired = {
        name: _Wired(upstream, _link(upstream, transport), Budget())
        for name, upstream in config.upstreams.items()
    }
    store = store or _store(config)
    parts: dict[str, Route | Absent] = {}
    mistakes = []
    for model in config.models.values():
        if model.pipeline:
            continue
        try:
            parts[model.id] = _route(model, wired.get(model.upstream), store)
        except ValueError as error:  # how a leaf refuses its options
            mistakes.append(Mistake(path_of("models", model.id), f"{error}."))
    if mistakes:
        raise ConfigError(config.source, tuple(mistakes))
    joined = _Joined(config, wired, Routes(parts, ()), store)
    routes = {
        model.id: _shown(joined.route(model) if model.pipeline else parts[model.id], model, config)
        for model in config.models.values()
    }
    return Routes(routes, (_entry(config.models[name], routes[name]) for name in routes), store)


def _shown(route: Route | Absent, model: ModelConfig, config: Config) -> Route | Absent:
    """What concerns the client alone stands outside of what pipelines are made of."""
    if isinstance(route, Absent):
        return route
    inner = Show(route.inner, model.reasoning)
    return replace(route, inner=Strict(inner) if config.server.strict else inner)


def _store(config: Config) -> Store | None:
    recall = config.recall
    limits = Limits(recall.max_bytes, recall.max_age)
    match recall.store:
        case "off":
            return None
        case "memory":
            return MemoryStore(limits)
    if recall.path is None:
        return SqliteStore(_state_file(), limits, own_folder=True)
    path = Path(recall.path)
    if why := foreign(path):
        text = f"is '{path}', but that {why}: name another file, or move this one away."
        raise ConfigError(config.source, (Mistake("recall.path", text),))
    return SqliteStore(path, limits)


def _state_file() -> Path:
    """Where programs keep what should outlive a restart."""
    state = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(state or "~/.local/state").expanduser() / "usetool" / "recall.sqlite3"


def _entry(model: ModelConfig, route: Route | Absent) -> ModelEntry:
    reason = route.reason if isinstance(route, Absent) else ""
    nesting = () if isinstance(route, Absent) else route.nesting
    owner = model.upstream or "usetool"
    return ModelEntry(model.id, owner, not reason, reason, model.upstream, nesting)


class _Wired(NamedTuple):
    """An upstream with what its models share."""

    config: UpstreamConfig
    link: Link
    budget: Budget


@dataclass(frozen=True, slots=True)
class _Joined:
    """Makes pipelines of models that are there."""

    config: Config
    wired: Mapping[str, _Wired]
    parts: Routes
    store: Store | None

    def route(self, model: ModelConfig) -> Route | Absent:
        said = model.pipeline
        answerer = self._answerer(said["answerer"])
        if isinstance(answerer, Absent):
            return Absent(model.id, answerer.reason)
        adapter: Adapter = ReasonThenAnswer(
            self.parts.find(said["reasoner"]), answerer, self._pipeline(said)
        )
        if self.store is not None:
            # Not only for the thought: the reasoner too is told the conversation as it was.
            adapter = Recall(adapter, self.store, f"pipeline {model.id}")
        return Route(adapter, model.id, changes(model))

    def _answerer(self, name: str) -> Adapter:
        """Made for the pipeline: emulated tools are decided on first where a thought is at hand."""
        named = (one for one in self.config.models.values() if is_named(name, one.id))
        own = {
            one.id: _route(one, self.wired.get(one.upstream), self.store, decide=True)
            for one in named
            if not one.pipeline
        }
        return Routes(own, ()).find(name)

    def _pipeline(self, said: Mapping[str, Any]) -> Pipeline:
        given = {name: value for name, value in said.items() if name in _SAID_ALIKE}
        search = self._search(said["search"]) if "search" in said else None
        return Pipeline(**given, search=search, vision=self._sees(said["reasoner"]))

    def _search(self, name: str) -> Tavily:
        upstream = self.wired[name]
        key = upstream.config.api_key
        return Tavily(upstream.link if key and key.value else None)

    def _sees(self, name: str) -> bool:
        model = self.config.models.get(name)
        upstream = self.wired.get(model.upstream) if model else None
        usual = upstream is not None and upstream.config.kind == "claude"
        return bool(model.abilities.get("vision", usual)) if model else False


def _route(
    model: ModelConfig, upstream: _Wired | None, store: Store | None, decide: bool = False
) -> Route | Absent:
    if model.coming or upstream is None:
        return Absent(model.id, f"this version cannot do {', '.join(model.coming)} yet")
    if missing := upstream.config.missing():
        return Absent(model.id, f"the environment variable {' or '.join(missing)} is not set")
    settings = Settings(
        link=upstream.link,
        api_version=upstream.config.api_version,
        abilities=model.abilities,
        options={**upstream.config.options, **model.options},
    )
    leaf = _leaf(upstream.config.kind, settings, model.id)
    if isinstance(leaf, Absent):
        return leaf
    inner: Adapter = leaf
    if model.retry:
        inner = Retry(inner, upstream.budget, model.retry, upstream.link.timeouts.total)
    options = {**model.options, "decide": decide}
    wanted = ToolSettings(model.tools, upstream.config.kind, model.abilities, options)
    inner = with_tools(inner, leaf, wanted)
    if store is not None and model.recall:
        inner = Recall(inner, store, model.upstream, leaf.may_think)
    return Route(inner, model.name, changes(model), leaf)


def _leaf(kind: str, settings: Settings, model: str) -> Leaf:
    """Only the kinds that are configured are imported: some bring heavy packages."""
    try:
        module = import_module(f"adapters.{kind}")
    except ModuleNotFoundError as error:
        ours = error.name == f"adapters.{kind}"
        why = "this version does not have" if ours else f"the package '{error.name}' is missing for"
        return Absent(model, f"{why} upstreams of kind '{kind}'")
    if not hasattr(module, "connect"):
        return Absent(model, f"the module adapters.{kind} has no function connect(settings)")
    try:
        leaf: Leaf = module.connect(settings)
    except ImportError as error:  # of a package that not every machine can have
        return Absent(model, str(error))
    return leaf


def _link(upstream: UpstreamConfig, transport: Transport) -> Link:
    secrets = (secret.value for secret in upstream.secrets())
    return Link(
        name=upstream.id,
        base_url=upstream.base_url,
        transport=transport,
        headers=_headers(upstream),
        timeouts=Timeouts(**upstream.timeouts),
        proxy=upstream.proxy.value if upstream.proxy else None,
        secrets=tuple(secret for secret in secrets if len(secret) >= _SHORTEST_SECRET),
        key_from=_key_from(upstream),
        opened_by=upstream.auth if upstream.of_client else "",
    )


def _key_from(upstream: UpstreamConfig) -> str:
    """Where to look when it refuses the key; never the key."""
    if upstream.of_client:
        return "The key is the one that the client sent."
    named = {"api_key": upstream.api_key, **upstream.headers}
    for name, secret in named.items():
        if secret is not None and name.lower() in _KEYS:
            where = f"env:{secret.variable}" if secret.variable else f"'{name}' in the config"
            return f"The key comes from {where}. {TRY_IT}"
    if upstream.kind == "longtail":  # LiteLLM looks for keys in places of its own
        return ""
    return f'No key is sent: write api_key = "env:NAME" under [upstreams.{upstream.id}].'


def _headers(upstream: UpstreamConfig) -> dict[str, str]:
    headers = {
        "content-type": "application/json",
        # An answer that arrives compressed could be a bomb.
        "accept-encoding": "identity",
        "user-agent": f"usetool/{__version__}",
    }
    key = upstream.api_key.value if upstream.api_key else ""
    if key and upstream.auth == "x-api-key":
        headers["x-api-key"] = key
    elif key:
        headers["authorization"] = f"Bearer {key}"
    configured = {name.lower(): secret.value for name, secret in upstream.headers.items()}
    return {**headers, **configured}
