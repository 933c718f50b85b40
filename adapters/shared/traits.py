"""What is known of a model before it is asked: limits and abilities."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol

from adapters.protocol import ChatRequest


@dataclass(frozen=True, slots=True)
class Traits:
    """None is not known."""

    context_length: int | None = None
    max_output: int | None = None
    tools: bool | None = None
    parallel: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    json_schema: bool | None = None
    family: str | None = None

    def over(self, other: Traits) -> Traits:
        """These, and the other's where nothing is known here."""
        return Traits(*[
            mine if (mine := getattr(self, one.name)) is not None else getattr(other, one.name)
            for one in fields(self)
        ])  # fmt: skip


class Lister(Protocol):
    """A leaf whose upstream can be asked what models it has."""

    async def models(self) -> dict[str, Traits]:
        """Return them by the upstream's own names, or raise a `GatewayError`."""
        ...


class Knower(Protocol):
    """A leaf that knows, or can ask, what one model can do."""

    async def traits(self, model: str) -> Traits:
        """Never fails: what cannot be learned is not known."""
        ...


class Thinker(Protocol):
    """A leaf that knows which requests have nothing to do with thoughts; else every one may."""

    def may_think(self, request: ChatRequest) -> bool:
        """Whether the upstream may think about it, or want its thoughts of earlier turns back."""
        ...
