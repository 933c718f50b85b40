"""`McpTable`: the tools of one server.

One task keeps the connection, as it must be opened and closed in one; calls come from others. The
package is imported where such a table is started.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from adapters.protocol import Json
from middleware.config import Secret, ToolConfig
from middleware.config.tools import secrets_of
from middleware.tools.foreign import Raised, attempt, outcome_of
from middleware.tools.mcp.content import content_of
from middleware.tools.python.schemas import untitled
from middleware.tools.table import Declared, Derived, TableContext, declared
from middleware.tools.tool import CallFailed, ToolContext, ToolResult

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.types import CallToolResult, Tool

_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "USER")
_MOST_PAGES, _MOST_TOOLS = 100, 1000
_START = 30.0
"""Seconds until a server must have said what it has."""
_APART = 1.0
"""Seconds between two starts of a server."""
_AGAIN = 60.0
"""Seconds after which one that never came is tried once more."""
_END = 8.0
_CLOSED, _ENDED = -32000, "Connection closed"
"""What the official client says of a connection that has ended."""
_Word = Literal["gone", "list", "stop"]


@dataclass(frozen=True)
class McpTool(Declared):
    own_name: str = ""
    table: McpTable | None = None

    async def run(self, arguments: Json, context: ToolContext, /) -> ToolResult:
        assert self.table is not None
        self.hold(arguments)
        return ToolResult(content_of(await self.table.call(self.own_name, arguments)))


class McpTable:
    def __init__(self, config: ToolConfig, around: TableContext) -> None:
        self.config = config
        self.version = 0
        self.reasons: dict[str, str] = {}
        self._around = around
        self._tools: list[McpTool] = []
        self._session: ClientSession | None = None
        self._refused: ClientSession | None = None
        self._words: asyncio.Queue[_Word] = asyncio.Queue()
        self._wanted = asyncio.Event()
        """A call waits for the server."""
        self._tried = asyncio.Event()
        """The last start has come to something."""
        self._came = False
        self._ending = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    def tools(self) -> Sequence[McpTool]:
        return self._tools

    async def begin(self) -> None:
        unset = [one.variable for one in secrets_of(self.config) if not one.value]
        if unset:
            told = f"the environment variable {', '.join(unset)} is not set"
            self.reasons[self.config.id] = told
        elif self.config.enabled:
            self._keeper = self._keeper or asyncio.ensure_future(self._keep())
            await self._tried.wait()

    async def end(self) -> None:
        if self._keeper is not None:
            self._ending.set()
            self._words.put_nowait("stop")
            self._wanted.set()
            await asyncio.wait({self._keeper}, timeout=_END)
            self._keeper.cancel()

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._ending.is_set():
            began = loop.time()
            self._wanted.clear()
            self._tried.clear()
            self._came = False
            outcome = await outcome_of(self._serve())
            self._session = None
            if not self._came:
                if isinstance(outcome, Raised):
                    self._lacks(outcome)
                self._tried.set()
            if self._ending.is_set():
                return
            # One that had tools is started when they are called.
            with suppress(TimeoutError):
                async with asyncio.timeout(None if self._tools else _AGAIN):
                    await self._wanted.wait()
            await asyncio.sleep(max(0.0, began + _APART - loop.time()))

    def _lacks(self, raised: Raised) -> None:
        error = raised.error
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        command = self.config.command
        name = f" {os.path.basename(command[0])}" if command else ""
        self.reasons[self.config.id] = f"the MCP server{name} did not start: {Raised(error)}"
        self.version += 1

    async def _serve(self) -> None:
        """Connect, say what there is, and stay until it is lost or no longer wanted."""
        self._words = asyncio.Queue()
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(_START):
                session = await self._connect(stack)
                await session.initialize()
                await self._list(session)
            self._session, self._came = session, True
            self._tried.set()
            while not self._ending.is_set() and await self._words.get() == "list":
                await self._list(session)
            self._session = None

    async def _connect(self, stack: AsyncExitStack) -> ClientSession:
        await asyncio.to_thread(__import__, "mcp")
        from mcp import ClientSession

        logging.getLogger("mcp").setLevel(logging.CRITICAL)  # lines that are no JSON are skipped
        read, write = await stack.enter_async_context(self._streams())
        session = ClientSession(read, write, message_handler=self._heard)
        return await stack.enter_async_context(session)

    def _streams(self) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        from middleware.tools.mcp.child import ServerProcess, child_streams
        from middleware.tools.mcp.web import web_streams

        config, folder = self.config, self._around.folder
        if config.url:
            return web_streams(config.url, _values(config.headers), self._refuse)
        program, *words = config.command or ()
        if os.sep in program:
            program = str(folder / program)
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        where = folder / (config.cwd or "")
        environment = {**inherited, **_values(config.env)}
        return child_streams(ServerProcess((program, *words), environment, where, self._gone))

    def _refuse(self) -> None:
        """The server does not know the session any more, so it has not run what it was asked."""
        self._refused = self._session

    def _gone(self, why: str) -> None:
        if why:
            self._around.say(f"tools.{self.config.id}: the MCP server is ended: {why}")
        self._words.put_nowait("gone")

    async def _heard(self, message: object) -> None:
        from mcp.types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification) and self._words.empty():
            self._words.put_nowait("list")

    async def _list(self, session: ClientSession) -> None:
        """Read all pages of what the server has."""
        from mcp.types import PaginatedRequestParams

        found: list[Tool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) > _MOST_TOOLS:
                break
        self.reasons.clear()
        self._tools = [tool for one in found[:_MOST_TOOLS] for tool in self._made(one)]
        self.version += 1

    def _made(self, found: Tool) -> Sequence[McpTool]:
        schema = untitled(found.input_schema)
        derived = Derived(found.name, found.name, found.description or "", schema)
        made = attempt(lambda: declared(self.config, derived))
        if isinstance(made, Raised):
            self.reasons[f"{self.config.id}.{found.name}"] = str(made.error)
            return ()
        said = {**vars(made), "closed": False}
        return (McpTool(**said, own_name=found.name, table=self),)

    async def call(self, name: str, arguments: Json) -> CallToolResult:
        """Call one of its tools; a session that a server over HTTP has lost is begun anew, once."""
        from mcp import MCPError

        for _ in range(2):
            session = await self._connected()
            try:
                return await session.call_tool(name, arguments)
            except MCPError as error:
                refused, lost = session is self._refused, _is_lost(error.code, error.message)
                if self._session is session and (refused or error.message == _ENDED):
                    self._session = None  # the next call waits for another
                    self._words.put_nowait("gone")
                if lost and not refused:
                    raise self._away(error.message) from error
                if not refused:
                    raise CallFailed(error.message) from error
        raise self._away("it does not stay")

    async def _connected(self) -> ClientSession:
        if self._session is None:
            self._tried.clear()
            self._wanted.set()
            await self._tried.wait()
        if self._session is None:
            raise self._away(self.reasons.get(self.config.id, "it did not start"))
        return self._session

    def _away(self, why: str) -> CallFailed:
        return CallFailed(f"the MCP server of '{self.config.id}' is away: {why}")


def _values(secrets: Mapping[str, Secret]) -> dict[str, str]:
    return {name: one.value for name, one in secrets.items()}


def _is_lost(code: int, message: str) -> bool:
    """Servers use codes as they like, so the words count too."""
    return code == _CLOSED and message.startswith((_ENDED, "SSE stream"))
