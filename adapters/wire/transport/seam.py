"""What a transport is to those above it: it sends a request, and gives an answer to be read."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Protocol

from adapters.wire.capture import Chunking
from adapters.wire.transport.request import Outgoing


class RawReply(Protocol):
    """The head of an answer, and its body as it comes. What breaks it is a `WireError`."""

    status: int
    headers: Mapping[str, str]
    """Their names are found in small letters."""

    @property
    def over(self) -> bool:
        """All of the body is read."""
        ...

    @property
    def chunking(self) -> Chunking:
        """Known where the request said to note them."""
        ...

    def read(self, due: float) -> Awaitable[bytes]:
        """Return all that is here, waiting for something; b"" is the end."""
        ...

    def close(self) -> None:
        """Keep the connection for another request if all of the answer was here, else cut it."""
        ...


class Sender(Protocol):
    async def send(self, request: Outgoing, due: float) -> RawReply:
        """Return once the head of the answer is here."""
        ...

    async def close(self) -> None: ...
