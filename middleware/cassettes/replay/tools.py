"""Server tools where recordings are played: declared as they were, and never run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from adapters.protocol import ChatRequest, Json
from middleware.tools.tool import CallFailed, Offer, Say, ToolContext, ToolResult


@dataclass(frozen=True, slots=True)
class PlayedTool:
    """Stands where a table's tool stood."""

    declaration: Json
    timeout: float = 0.0
    searches: bool = True
    """Nobody knows any more; what was refused for want of a search was recorded so."""

    @property
    def id(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        name: str = self.declaration["function"]["name"]
        return name

    async def run(self, _arguments: Json, _context: ToolContext, /) -> ToolResult:
        raise CallFailed("a recording runs no tools")


@dataclass(frozen=True, slots=True)
class PlayedTools:
    """By the names the model sees."""

    declared: Mapping[str, Json]

    def offers(self, patterns: Sequence[str], _client: str) -> Mapping[str, Offer]:
        return {name: _offer(self.declared[name]) for name in patterns if name in self.declared}

    def taken(
        self, takeover: Collection[str], declared: Collection[str], _client: str
    ) -> Mapping[str, Offer]:
        known = [name for name in declared if name in takeover]
        return {name: _offer({"type": "function", "function": {"name": name}}) for name in known}

    def context(self, request: ChatRequest, model: str) -> ToolContext:
        return ToolContext(request.call.id, request.call.client, model=model)

    async def run(
        self, offer: Offer, _arguments: str, _context: ToolContext, _say: Say | None = None
    ) -> ToolResult:
        """What was recorded is asked for before."""
        return ToolResult(f"Error: a recording runs no tools, and has no {offer.name}.", True)


def _offer(declaration: Json) -> Offer:
    tool = PlayedTool(declaration)
    return Offer(tool, tool.name, declaration)
