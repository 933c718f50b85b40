"""`Elsewhere`: what the other workers keep of the last requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from adapters.protocol import Json


class Elsewhere(Protocol):
    """Who does not answer soon is left out."""

    async def summaries(self, owner: str | None) -> Sequence[tuple[float, Json]]: ...

    async def whole(self, owner: str | None, identity: str, address: str) -> Json | None: ...
