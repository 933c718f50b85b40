"""What a config came to: all that a request needs, exchanged as one when the config changes."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.http import Transport
from middleware.config import Config, Server
from middleware.hosts import Hosts
from middleware.intake import Keys
from middleware.last import Scrubber
from middleware.models import ModelList
from middleware.routing import Routes, build


@dataclass(frozen=True, slots=True)
class Served:
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


def served(config: Config, transport: Transport, before: Served | None = None) -> Served:
    """Build what a config says; memories of the one before are kept if they may be."""
    same = before is not None and before.config.recall == config.recall
    routes = build(config, transport, before.routes.store if before and same else None)
    return Served(
        config=config,
        keys=Keys(key.value for key in config.server.keys),
        routes=routes,
        models=ModelList(config, routes),
        scrubber=Scrubber(config),
        hosts=None if config.server.keys else Hosts(config.server),
        passes_keys=any(upstream.of_client for upstream in config.upstreams.values()),
    )
