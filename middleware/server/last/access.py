"""Who may look at kept requests: a client at its own, the machine's owner at all of them."""

from __future__ import annotations

from starlette.types import Scope

from middleware.config import Server, is_loopback
from middleware.server.transport.hosts import host_name
from middleware.server.transport.intake import Keys, header

_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via", b"origin")


def reader(scope: Scope, keys: Keys, server: Server) -> str | None:
    """Return the digest of whose requests may be seen; None: everybody's.

    Where no key is asked, a caller without one that comes from this machine by no proxy and no web
    page is its owner. A page whose name was bound to this address still says its own name.
    """
    owner = keys.owner(scope)
    if owner or server.keys:
        return owner
    forwarded = any(header(scope, name) for name in _FORWARDED)
    name = host_name(header(scope, b"host").decode("latin-1"))
    peer = scope.get("client")
    own = peer is not None and is_loopback(peer[0]) and is_loopback(name)
    return None if own and not forwarded else owner
