"""What a config came to: all that a request needs, exchanged as one when the config changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.types import Scope

from adapters.wire.capture import FactRow
from adapters.wire.http import Transport
from middleware.accounts.clients import Client, clients_by_key
from middleware.accounts.prices import Prices
from middleware.building import Shared, build, open_answers
from middleware.cassettes.selection import Selection, is_named, not_allowed, refusal, select
from middleware.cli.command import complain
from middleware.config import Config, Server
from middleware.machine.memory import MemoryBoard
from middleware.routing import Routes
from middleware.server.last import Scrubber
from middleware.server.models import ModelList
from middleware.server.transport.hosts import Hosts
from middleware.server.transport.intake import Caller, Keys
from middleware.state.memory import MemoryState
from middleware.wrappers.recall import Store

if TYPE_CHECKING:  # loaded where there are any
    from middleware.cassettes.studio import Studio
    from middleware.tools.shelf import ToolShelf


@dataclass(frozen=True, slots=True)
class Runtime:
    config: Config
    keys: Keys
    routes: Routes
    models: ModelList
    scrubber: Scrubber
    hosts: Hosts | None
    """Under which names it may be asked; None where a key is asked instead."""
    asks_keys: bool
    """A client must send a key of the gateway's own."""
    passes_keys: bool
    """An upstream is opened by the client's own key."""
    prices: Prices
    facts: FactRow
    """What upstreams said of themselves."""
    shared: Shared
    """What the next config goes on with."""
    answers: Store | None
    """Keeps those that clients name later on; None: nothing is kept."""
    studio: Studio | None = None
    """Where requests are recorded and replayed; None: they cannot be."""
    limited: Mapping[str, Routes] = field(default_factory=dict)
    """Name of a client → its models, where it may not ask all."""

    @property
    def server(self) -> Server:
        return self.config.server

    def secret(self, selection: Selection | None, mode: str) -> bytes:
        """Signs what a client carries; a replay is the same on every machine."""
        if mode != "replay" or self.studio is None or selection is None:
            return self.shared.secret
        return self.studio.secret(selection)

    def routes_of(self, client: Client) -> Routes:
        """The models a client may ask."""
        return self.limited.get(client.name, self.routes)

    def mode(self, selection: Selection | None, model: str = "") -> str:
        """In which cassettes serve a request; empty: they have nothing to do with it. Some models
        may have one of their own.
        """
        studio = self.studio
        if studio is None or selection is None:
            return ""
        line = self.routes.line(model) if model and studio.settings.models else ""
        return studio.mode(selection, line)

    def is_played(self, selection: Selection | None, model: str) -> bool:
        """Whether a recording answers: no upstream is paid, and no limit acts."""
        return self.mode(selection, model) == "replay"

    def selection(self, scope: Scope, caller: Caller) -> Selection | None:
        """What a request says of cassettes; None: it is answered as if there were none."""
        named, studio = is_named(scope, caller.suffix), self.studio
        if studio is None:
            if named:
                raise refusal()
            return None
        if not named:
            return studio.silent
        found = select(scope, caller.suffix, studio.settings.name)
        if found.name is not None and not caller.client.may_play(found.name.name):
            raise not_allowed(found.name.name)
        return found


def build_runtime(
    config: Config,
    transport: Transport,
    before: Runtime | None = None,
    studio: Studio | None = None,
    shared: Shared | None = None,
) -> Runtime:
    """Build what a config says; memories of the one before are kept if they may be."""
    same = before is not None and before.config.recall == config.recall
    shared = shared or (before.shared if before else Shared(MemoryBoard(), MemoryState()))
    shared = shared._replace(tools=_shelf(config, shared))
    old = before if same else None
    routes = build(config, transport, old.routes.store if old else None, shared)
    clients = clients_by_key(config)
    passes_keys = any(upstream.of_client for upstream in config.upstreams.values())
    return Runtime(
        config=config,
        keys=Keys(clients, not passes_keys or studio is not None),
        routes=routes,
        models=ModelList(config, routes),
        scrubber=Scrubber(config),
        hosts=None if config.asks_keys else Hosts(config.server),
        asks_keys=config.asks_keys,
        passes_keys=passes_keys,
        prices=Prices(config),
        facts=transport.facts,
        shared=shared,
        answers=old.answers if old else open_answers(config, shared.state),
        studio=studio,
        limited=_limited(clients.values(), routes),
    )


def _shelf(config: Config, shared: Shared) -> ToolShelf | None:
    """The tools of a config; without any nothing of them is loaded."""
    if not config.tools:
        return None
    from middleware.tools.shelf import open_shelf

    return open_shelf(config, shared.tools, shared.state, complain)


def _limited(clients: Iterable[Client], routes: Routes) -> Mapping[str, Routes]:
    return {
        client.name: routes.limited_to(client.may_ask)
        for client in clients
        if client.said is not None and client.said.models
    }
