"""`ToolShelf`: the tables of server tools; which a model offers, and the one way to run them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from adapters.protocol import ChatRequest
from middleware.tools.tool import Offer, Say, ToolContext, ToolResult


@dataclass(frozen=True, slots=True)
class ToolShelf:
    """One a config; tables that did not change are handed from one to the next."""

    def offers(self, patterns: Sequence[str], client: str) -> Mapping[str, Offer]:
        """What `server_tools` of a model means now, for one client: name → tool, in order."""
        raise NotImplementedError

    def taken(
        self, takeover: Collection[str], declared: Collection[str], client: str
    ) -> Mapping[str, Offer]:
        """Tools that a client declared and that are run here instead (`takeover` of the model)."""
        raise NotImplementedError

    def context(self, request: ChatRequest, model: str) -> ToolContext:
        """On whose behalf they run; made once a request, as it counts the calls."""
        raise NotImplementedError

    async def run(
        self, offer: Offer, arguments: str, context: ToolContext, say: Say | None = None
    ) -> ToolResult:
        """Run one call with its arguments as the model wrote them; never raises.

        Being cancelled cancels the tool. Time-outs, limits, cutting and masking are in it.
        """
        raise NotImplementedError


def no_such_tool(name: str, names: Collection[str]) -> ToolResult:
    """What a call of a tool that is not there gets."""
    there = ", ".join(names) or "none"
    return ToolResult(f"Error: there is no tool '{name[:80]}'. There are: {there}.", failed=True)
