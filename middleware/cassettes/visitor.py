"""One request, as cassettes need to know it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from adapters.protocol import RequestContext
from middleware.cassettes.names import CassetteName
from middleware.cassettes.selection import Selection

Operation = Literal["chat", "embeddings"]


class Visitor(NamedTuple):
    name: CassetteName
    """The cassette it has to do with."""
    selection: Selection
    model: str
    mode: str
    """In which cassettes serve it."""
    body: bytes
    key: str
    """The client's own; known, so that it is never written."""
    call: RequestContext
    operation: Operation = "chat"
    created: int = 0
    """Seconds since 1970, as the answer says them."""
    path: str = ""
    """Of the door it came by, if that can say more than `body`:"""
    own: bytes = b""
    """What the client sent there."""
