"""A shelf of server tools that are functions of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch

from adapters.protocol import ChatRequest, Json
from middleware.tools.tool import Content, Offer, Say, ToolContext, ToolResult

Answer = Callable[[str, ToolContext, Say | None], Awaitable[ToolResult]]


def declared(name: str) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


@dataclass
class FakeTool:
    id: str
    answer: Answer
    ran: list[str] = field(default_factory=list)
    timeout: float = 30
    searches: bool = False

    @property
    def name(self) -> str:
        return self.id.partition(".")[2] or self.id

    @property
    def declaration(self) -> Json:
        return declared(self.name)

    async def run(self, arguments: Json, context: ToolContext, /) -> ToolResult:
        raise NotImplementedError  # the shelf asks its answer


class FakeShelf:
    def __init__(self, **answers: Answer | Content) -> None:
        """Of tables of one name: `weather__now` is `weather.now`."""
        self.known = [
            FakeTool(name.replace("__", "."), answer if callable(answer) else saying(answer))
            for name, answer in answers.items()
        ]
        self.left: list[str] = []
        """Arguments of calls that were cancelled."""

    def ran(self, identity: str) -> list[str]:
        return next(tool.ran for tool in self.known if tool.id == identity)

    def offers(self, patterns: Sequence[str], client: str) -> Mapping[str, Offer]:
        return {
            tool.name: Offer(tool, tool.id.partition(".")[0], tool.declaration)
            for tool in self.known
            if any(fnmatch(tool.id, pattern) for pattern in patterns)
        }

    def taken(
        self, takeover: Collection[str], declared: Collection[str], client: str
    ) -> Mapping[str, Offer]:
        every = self.offers(["*"], client)
        return {name: every[name] for name in declared if name in takeover}

    def context(self, request: ChatRequest, model: str) -> ToolContext:
        return ToolContext(request.call.id, request.call.client, request.call.owner, model=model)

    async def run(
        self, offer: Offer, arguments: str, context: ToolContext, say: Say | None = None
    ) -> ToolResult:
        tool = next(tool for tool in self.known if tool.id == offer.tool.id)
        tool.ran.append(arguments)
        try:
            return await tool.answer(arguments, context, say)
        except asyncio.CancelledError:
            self.left.append(arguments)
            raise


def saying(content: Content) -> Answer:
    async def answer(_arguments: str, _context: ToolContext, _say: Say | None) -> ToolResult:
        failed = isinstance(content, str) and content.startswith("Error: ")
        return ToolResult(content, failed, 0.01, len(content))

    return answer
