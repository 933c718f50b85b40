"""Who may look at what is kept: a client at its own, an admin and the machine's owner at all."""

from __future__ import annotations

from typing import NamedTuple

from starlette.types import Scope

from middleware.accounts.clients import Client
from middleware.config import Config, is_loopback
from middleware.server.transport.hosts import host_name
from middleware.server.transport.intake import Keys, header

_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via", b"origin")


class Access(NamedTuple):
    """What a caller may see."""

    client: Client
    everything: bool
    """Requests and usage of everybody."""
    metrics: bool
    cassettes: bool
    """What was played of them; it may begin them again, too."""

    @property
    def owner(self) -> str | None:
        """Whose requests; None: everybody's."""
        return None if self.everything else self.client.owner

    @property
    def name(self) -> str | None:
        """Whose usage; None: everybody's."""
        return None if self.everything else self.client.name


def reader(scope: Scope, keys: Keys, config: Config) -> Access:
    """Return what a caller may see, or raise `Unauthorized`."""
    client = keys.caller(scope).client
    everything = client.admin or _is_owner(scope, client, config)
    return Access(
        client=client,
        everything=everything,
        metrics=everything or not config.clients,
        cassettes=everything or client.said is None,
    )


def _is_owner(scope: Scope, client: Client, config: Config) -> bool:
    """Where no key is asked, a caller without one that comes from this machine by no proxy and no
    web page is its owner. A page whose name was bound to this address still says its own name.
    """
    if client.owner or config.asks_keys:
        return False
    forwarded = any(header(scope, name) for name in _FORWARDED)
    name = host_name(header(scope, b"host").decode("latin-1"))
    peer = scope.get("client")
    own = peer is not None and is_loopback(peer[0]) and is_loopback(name)
    return own and not forwarded
