"""One request, as cassettes need to know it."""

from __future__ import annotations

from typing import NamedTuple

from adapters.protocol import RequestContext
from middleware.cassettes.selection import Selection


class Visitor(NamedTuple):
    selection: Selection
    model: str
    mode: str
    """In which cassettes serve it."""
    body: bytes
    key: str
    """The client's own; known, so that it is never written."""
    call: RequestContext
    created: int = 0
    """Seconds since 1970, as the answer says them."""
    path: str = ""
    """Of the door it came by, if that can say more than `body`:"""
    own: bytes = b""
    """What the client sent there."""
