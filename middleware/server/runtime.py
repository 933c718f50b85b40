"""What a config came to: all that a request needs, exchanged as one when the config changes."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.wire.http import Transport
from middleware.building import build
from middleware.config import Config, Server
from middleware.routing import Routes
from middleware.server.last import Scrubber
from middleware.server.models import ModelList
from middleware.server.transport.hosts import Hosts
from middleware.server.transport.intake import Keys


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

    @property
    def server(self) -> Server:
        return self.config.server


def build_runtime(config: Config, transport: Transport, before: Runtime | None = None) -> Runtime:
    """Build what a config says; memories of the one before are kept if they may be."""
    same = before is not None and before.config.recall == config.recall
    routes = build(config, transport, before.routes.store if before and same else None)
    return Runtime(
        config=config,
        keys=Keys(key.value for key in config.server.keys),
        routes=routes,
        models=ModelList(config, routes),
        scrubber=Scrubber(config),
        hosts=None if config.server.keys else Hosts(config.server),
        passes_keys=any(upstream.of_client for upstream in config.upstreams.values()),
    )
