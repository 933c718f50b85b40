"""Config → the table of models: the wrappers of each are nested here, once, in their one order.

    Route › Show › ServerTools › Retry › Strict › Recall › Automatic | EmulatedTools | LeakRescue
      › Breaker › Queue › Rotation › leaf

A pipeline stands where a leaf does: Route › Show › Strict › Recall › ReasonThenAnswer. Its two
parts are models without what is for clients: Route › Retry › Recall › … › leaf.

A model of several places, or of one with several keys, has Choices in place of Retry, and its
places within: Route › Show › Choices › (Route › Strict › Recall › … › leaf) each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from adapters.kind import CommonAbilities, Kind
from adapters.leaf import Leaf
from adapters.options import made
from adapters.protocol import Adapter, ChatRequest
from adapters.shared.search import Searcher
from adapters.wire.http import Link, Transport
from middleware.config import (
    Config,
    ConfigError,
    Mistake,
    ModelConfig,
    PublicNames,
    UpstreamConfig,
    path_of,
)
from middleware.links import Connected, link_to
from middleware.machine.board import Board
from middleware.machine.memory import MemoryBoard
from middleware.places import MakeRoute, PlaceBuilder, counted
from middleware.routing import ModelEntry, Routes
from middleware.server import catalog
from middleware.state.homes import state_folder
from middleware.state.memory import MemoryState
from middleware.state.redis import RedisState
from middleware.state.store import State
from middleware.wrappers.carriers import Carriers
from middleware.wrappers.emulation import ToolSettings, with_tools
from middleware.wrappers.guards import guard
from middleware.wrappers.key_ring import KeyRing, ring_of
from middleware.wrappers.recall import (
    DeferredStore,
    Limits,
    MemoryStore,
    Recall,
    RedisStore,
    SqliteStore,
    Store,
    foreign,
)
from middleware.wrappers.retry import Budget, Retry
from middleware.wrappers.route import Absent, Route, changes
from middleware.wrappers.show import Show
from middleware.wrappers.strict import Strict

if TYPE_CHECKING:
    from middleware.tools.shelf import ToolShelf
    from middleware.wrappers.pipeline import Pipeline
    from middleware.wrappers.server_tools.menu import ToolSource


@dataclass(frozen=True, slots=True)
class Means:
    """What adapters are made of; where recordings are played it is not the usual."""

    link: Callable[[UpstreamConfig], Link]
    board: Board
    state: State
    tools: ToolSource | None = None
    """Server tools; None: there are none in the config."""
    retry: Callable[..., Retry] = Retry
    recorded: bool = False
    """Libraries and model files are not there; their leaves read what was recorded of them."""

    def ring(self, upstream: UpstreamConfig) -> KeyRing:
        """Where recordings are played, nobody is full, and one key opens all."""
        if self.recorded:
            return KeyRing(upstream.id, self.board, self.state)
        return ring_of(upstream, self.board, self.state)


class Shared(NamedTuple):
    """What outlives a config, and is not of one process alone."""

    board: Board
    state: State
    tools: ToolShelf | None = None
    """Of this config; the next has its own, with the tables that did not change."""
    secret: bytes = b""
    """Signs what clients carry."""


def build(
    config: Config, transport: Transport, store: Store | None = None, shared: Shared | None = None
) -> Routes:
    """Make every adapter a config asks for; what cannot be made says why when it is asked.

    What is given is used instead of something new.
    """
    shared = shared or Shared(MemoryBoard(), MemoryState())
    link = partial(link_to, transport=transport)
    means = Means(link, shared.board, shared.state, shared.tools)
    return build_with(means, config, store)


def build_with(means: Means, config: Config, store: Store | None = None) -> Routes:
    rings = {name: means.ring(upstream) for name, upstream in config.upstreams.items()}
    for name in counted(config):
        rings[name].counting = True
    upstreams = {
        name: Connected(upstream, means.link(upstream), Budget(), rings[name])
        for name, upstream in config.upstreams.items()
    }
    store = store or open_store(config, means.state)
    routes = _Builder(config, means, upstreams, store).routes()
    entries = (_entry(config.models[name], routes[name]) for name in routes)
    return Routes(routes, entries, store, rings)


@dataclass(frozen=True, slots=True)
class _Builder:
    config: Config
    means: Means
    upstreams: Mapping[str, Connected]
    store: Store | None
    plain: dict[str, Route | Absent] = field(default_factory=dict)
    """Those that were made."""

    def routes(self) -> dict[str, Route | Absent]:
        mistakes = []
        for model in self.config.models.values():
            try:
                if model.upstream:
                    self._plain(model)
            except ValueError as error:  # how a leaf refuses its options
                mistakes.append(Mistake(path_of("models", model.id), f"{error}."))
        if mistakes:
            raise ConfigError(self.config.source, tuple(mistakes))
        return {model.id: self._public(model) for model in self.config.models.values()}

    def _plain(self, model: ModelConfig) -> Route | Absent:
        """A model of an upstream, or a pipeline, without what stands around the one that answers;
        Recall is the outermost.
        """
        if model.id not in self.plain:
            make = self._pipeline if model.pipeline else self._model
            self.plain[model.id] = make(model)
        return self.plain[model.id]

    def _public(self, model: ModelConfig) -> Route | Absent:
        """A model as clients ask it."""
        route = self._asked(model, self._plain, strict=self.config.server.strict)
        if isinstance(route, Absent):
            return route
        inner = self._with_tools(model, route.inner, route.leaf)
        return replace(route, inner=Show(inner, model.reasoning))

    def _with_tools(self, model: ModelConfig, inner: Adapter, leaf: Leaf | None) -> Adapter:
        """With the tools that are run here, outside of choices: one runs once, whoever answers."""
        shelf = self.means.tools
        if shelf is None or not (model.server_tools or model.takeover):
            return inner
        from middleware.wrappers.server_tools import ServerTools, ServerToolSettings

        settings = ServerToolSettings(
            model.id, model.server_tools, model.takeover, model.max_rounds, model.steps
        )
        remembered = self.store is not None and (model.recall or leaf is None)
        thinks = None if remembered else leaf.may_think if leaf else _may_think
        return ServerTools(inner, shelf, settings, self.store and self.store.rounds(), thinks)

    def _part(self, name: str, decide: bool = False) -> Route | Absent:
        """A model as pipelines ask it; Strict and Show stand around the pipeline instead.

        `decide`: where its tools are emulated, it first decides on a call, then answers.
        """
        model, _ = self._meant(name)
        make = partial(self._model, decide=True) if decide else self._plain
        return Routes({model.id: self._asked(model, make, strict=False)}, ()).find(name)

    def _asked(self, model: ModelConfig, make: MakeRoute, strict: bool) -> Route | Absent:
        """A model with those it is made of, or asked again where it is alone."""
        places = PlaceBuilder(
            self.config, self.upstreams, self.means.state, make, strict, self.means.recorded
        )
        if places.are_several(model):
            return places.route(model)
        route = make(model)
        if isinstance(route, Absent):
            return route
        inner = Strict(route.inner) if strict else route.inner
        return replace(route, inner=self._retried(model, inner))

    def _retried(self, model: ModelConfig, inner: Adapter) -> Adapter:
        upstream = self.upstreams.get(model.upstream)
        if upstream is None or not model.retry:
            return inner
        return self.means.retry(inner, upstream.budget, model.retry, upstream.link.timeouts.total)

    def _model(self, model: ModelConfig, decide: bool = False) -> Route | Absent:
        upstream = self.upstreams[model.upstream]
        if missing := upstream.config.missing():
            why = f"the environment variable {' or '.join(missing)} is not set"
            return Absent(model.id, why)
        options = {**upstream.config.options, **model.options}
        leaf = self._leaf(model, upstream, options)
        if isinstance(leaf, Absent):
            return leaf
        kind = upstream.config.language
        settings = ToolSettings(model.tools, kind, model.abilities, options, decide)
        guarded = guard(leaf, model, upstream.ring)
        # Within an answer that has begun no Retry outside can ask again, so this is retried itself.
        correcting = self._retried(model, guarded)
        inner = with_tools(leaf, settings, correcting, guarded)
        inner = Carriers(inner, kind.language, model.upstream, partial(_longest, leaf, kind))
        if self.store is not None and model.recall:
            inner = Recall(inner, self.store, model.upstream, leaf.may_think)
        return Route(inner, model.name, changes(model), leaf, guarded)

    def _leaf(self, model: ModelConfig, upstream: Connected, options: Mapping[str, Any]) -> Leaf:
        kind, version = upstream.config.language, upstream.config.api_version
        connect = kind.recorded if self.means.recorded and kind.recorded else kind.connect
        if connect is None:
            return Absent(model.id, f"upstreams of kind '{kind.name}' answer no chats")
        try:
            return connect(kind.settings(upstream.link, version, model.abilities, options))
        except ModuleNotFoundError as error:
            why = f"the package '{error.name}' is missing for upstreams of kind '{kind.name}'"
            return Absent(model.id, why)
        except ImportError as error:  # of a package that not every machine can have
            return Absent(model.id, str(error))

    def _pipeline(self, model: ModelConfig) -> Route | Absent:
        said = model.pipeline
        # Made for the pipeline, because it decides on its tools first: a thought is at hand.
        answerer = self._part(said["answerer"], decide=True)
        if isinstance(answerer, Absent):
            return Absent(model.id, answerer.reason)
        reasoner = self._part(said["reasoner"])
        from middleware.wrappers.pipeline import ReasonThenAnswer

        adapter: Adapter = Carriers(ReasonThenAnswer(reasoner, answerer, self._settings(said)))
        if self.store is not None:
            # Not only for the thought: the reasoner too is told the conversation as it was.
            adapter = Recall(adapter, self.store, f"pipeline {model.id}")
        return Route(adapter, model.id, changes(model))

    def _settings(self, said: Mapping[str, Any]) -> Pipeline:
        from middleware.wrappers.pipeline import Pipeline

        same = frozenset(each.name for each in fields(Pipeline)) - {"search", "vision"}
        given = {name: value for name, value in said.items() if name in same}
        search = self._search(said["search"]) if "search" in said else None
        return Pipeline(**given, search=search, vision=self._sees(said["reasoner"]))

    def _search(self, name: str) -> Searcher | None:
        upstream = self.upstreams[name]
        keys, search = upstream.config.api_keys, upstream.config.language.search
        return search(upstream.link if any(key.value for key in keys) else None) if search else None

    def _sees(self, name: str) -> bool:
        """Whether a reasoner reads images, as far as its config or its name says."""
        model, carried = self._meant(name)
        said: bool | None = made(CommonAbilities, model.abilities).vision
        if said is not None or model.upstream not in self.upstreams:
            return bool(said)
        known_by_name = self.upstreams[model.upstream].config.language.known_by_name
        if known_by_name is None:
            return False
        return bool(known_by_name(model.name.replace("*", carried)).vision)

    def _meant(self, name: str) -> tuple[ModelConfig, str]:
        """The model of a name the config was checked for, and what stands for its `*`."""
        meant = PublicNames(self.config.models).meant(name)
        assert meant is not None
        return self.config.models[meant.id], meant.carried


def _may_think(_: ChatRequest) -> bool:
    """Of several, one may."""
    return True


def _longest(leaf: Leaf, kind: Kind, name: str) -> int | None:
    """The most tokens a model answers with."""
    return leaf.known(name).max_output or catalog.known(kind, name).max_output


def _entry(model: ModelConfig, route: Route | Absent) -> ModelEntry:
    reason = route.reason if isinstance(route, Absent) else ""
    nesting = () if isinstance(route, Absent) else route.nesting
    owner = model.upstream or "usetool"
    return ModelEntry(model.id, owner, not reason, reason, model.upstream, nesting)


def open_store(config: Config, state: State) -> Store | None:
    """Thoughts may fill one half of the room, rounds of server tools the other."""
    return _opened(config, state, "recall")


def open_answers(config: Config, state: State) -> Store | None:
    """Where answers are kept that clients name later on: beside memories, and at most half as much
    of them. Who alone serves a config may write them later: memories of turns another gateway
    looks for without a wait.
    """
    store = _opened(config, state, "answers")
    if isinstance(store, SqliteStore) and config.server.workers == 1:
        return DeferredStore(store, config.recall.max_bytes // 2)
    return store


def _opened(config: Config, state: State, name: str) -> Store | None:
    recall = config.recall
    limits = Limits(recall.max_bytes // 2, recall.max_age)
    if recall.store == "off":
        return None
    if recall.store == "state" and isinstance(state, RedisState):
        return RedisStore(state.connection, limits, name)
    if recall.store == "memory" or (recall.store == "state" and config.state.url == "memory:"):
        return MemoryStore(limits)
    if recall.path is None:
        return SqliteStore(state_folder(config) / f"{name}.sqlite3", limits, own_folder=True)
    path = Path(recall.path)
    if name != "recall":
        path = path.with_name(f"{path.stem}-{name}{path.suffix}")
    return _named_store(config, path, limits)


def _named_store(config: Config, path: Path, limits: Limits) -> Store:
    if why := foreign(path):
        text = f"is '{path}', but that {why}: name another file, or move this one away."
        raise ConfigError(config.source, (Mistake("recall.path", text),))
    return SqliteStore(path, limits)
