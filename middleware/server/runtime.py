"""What a config came to: all that a request needs, exchanged as one when the config changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.types import Scope

from adapters.wire.capture import FactRow
from adapters.wire.http import Transport
from middleware.building import Shared, build
from middleware.cassettes.selection import Selection, is_named, refusal, select
from middleware.config import Config, Server
from middleware.machine.memory import MemoryBoard
from middleware.routing import Routes
from middleware.server.last import Scrubber
from middleware.server.models import ModelList
from middleware.server.transport.hosts import Hosts
from middleware.server.transport.intake import Keys
from middleware.state.memory import MemoryState

if TYPE_CHECKING:  # loaded where there are cassettes
    from middleware.cassettes.studio import Studio


@dataclass(frozen=True, slots=True)
class Runtime:
    config: Config
    keys: Keys
    routes: Routes
    models: ModelList
    scrubber: Scrubber
    hosts: Hosts | None
    """Under which names it may be asked; None where a key is asked instead."""
    passes_keys: bool
    """An upstream is opened by the client's own key."""
    facts: FactRow
    """What upstreams said of themselves."""
    shared: Shared
    """What the next config goes on with."""
    studio: Studio | None = None
    """Where requests are recorded and replayed; None: they cannot be."""

    @property
    def server(self) -> Server:
        return self.config.server

    def selection(self, scope: Scope, suffix: str) -> Selection | None:
        """What a request says of cassettes; None: there are none here."""
        if self.studio is not None:
            return select(scope, suffix, self.studio.settings.name)
        if is_named(scope, suffix):
            raise refusal()
        return None


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
    routes = build(config, transport, before.routes.store if before and same else None, shared)
    passes_keys = any(upstream.of_client for upstream in config.upstreams.values())
    return Runtime(
        config=config,
        keys=Keys((key.value for key in config.server.keys), not passes_keys or studio is not None),
        routes=routes,
        models=ModelList(config, routes),
        scrubber=Scrubber(config),
        hosts=None if config.server.keys else Hosts(config.server),
        passes_keys=passes_keys,
        facts=transport.facts,
        shared=shared,
        studio=studio,
    )
