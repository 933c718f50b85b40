"""`ToolShelf`: the tables of server tools; which a model offers, and the one way to run them."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from adapters.protocol import ChatRequest, Json
from middleware.config import Config, ToolConfig
from middleware.config.tools import matches
from middleware.state.homes import state_folder
from middleware.state.store import Hold, State
from middleware.tools.calls import arguments_of, no_such_tool, timed
from middleware.tools.kinds import table_of
from middleware.tools.masks import Masks
from middleware.tools.python.threads import Threads
from middleware.tools.results import cut, failed
from middleware.tools.table import TableContext, ToolTable
from middleware.tools.tool import CallFailed, Offer, Say, ToolContext, ToolResult
from middleware.wrappers.recall.fingerprint import digest, plain_text

__all__ = ("ToolShelf", "no_such_tool", "open_shelf")

_START = 10.0
"""Seconds the gateway waits for its tools; those that take longer are offered later."""
_MINUTE = 60.0
_STEP, _MOST_STEPS = 0.1, 6000
"""How often, and for how long, the calls of a table that has gone are waited for."""
_Key = tuple[tuple[str, ...], str]


@dataclass(frozen=True, slots=True)
class Offers:
    """What one model offered to one client, as long as no table has changed."""

    versions: tuple[int, ...]
    by_name: Mapping[str, Offer]


@dataclass(frozen=True)
class ToolShelf:
    """One a config; tables that did not change are handed from one to the next."""

    config: Config
    tables: Mapping[str, ToolTable]
    state: State
    masks: Masks
    threads: Threads
    _kept: dict[_Key, Offers] = field(default_factory=dict)
    _running: Counter[str] = field(default_factory=Counter)
    """Calls at work, by table."""

    def offers(self, patterns: Sequence[str], client: str) -> Mapping[str, Offer]:
        """What `server_tools` of a model means now, for one client: name → tool, in order."""
        key = tuple(patterns), client
        versions = tuple([table.version for table in self.tables.values()])
        found = self._kept.get(key)
        if found is None or found.versions != versions:
            found = self._kept[key] = Offers(versions, _by_name(self._matching(patterns, client)))
        return found.by_name

    def _matching(self, patterns: Sequence[str], client: str) -> Iterator[Offer]:
        seen: set[str] = set()
        for pattern in patterns:
            for offer in self._every(client):
                if matches(pattern, offer.table, offer.tool.id) and offer.tool.id not in seen:
                    seen.add(offer.tool.id)
                    yield offer

    def _every(self, client: str | None) -> Iterator[Offer]:
        """All that a client may have; None: whoever it is."""
        for name, table in self.tables.items():
            if table.config.enabled and is_for(table.config, client):
                yield from (Offer(tool, name, tool.declaration) for tool in table.tools())

    def taken(
        self, takeover: Collection[str], declared: Collection[str], client: str
    ) -> Mapping[str, Offer]:
        """Tools that a client declared and that are run here instead (`takeover` of the model)."""
        wanted = [name for name in declared if name in takeover]
        if not wanted:
            return {}
        every = _by_name(self._every(client))
        return {name: every[name] for name in wanted if name in every}

    def context(self, request: ChatRequest, model: str) -> ToolContext:
        """On whose behalf they run; made once a request, as it counts the calls."""
        call = request.call
        session = _session(request, model)
        # Names that nobody outside has written.
        folder = digest(call.owner).hex()[:32]
        workspace = state_folder(self.config) / "workspaces" / folder / session
        return ToolContext(call.id, call.client, call.owner, session, model, workspace)

    def find(self, name: str) -> Offer | None:
        """A tool by its id or name, for the operator."""
        every = [*self._every(None)]
        return next((one for one in every if name in (one.tool.id, one.tool.name)), None)

    async def run(
        self, offer: Offer, arguments: str, context: ToolContext, say: Say | None = None
    ) -> ToolResult:
        """Run one call with its arguments as the model wrote them; never raises.

        Being cancelled cancels the tool. Time-outs, limits, cutting and masking are in it.
        """
        table, tool = self.tables[offer.table].config, offer.tool
        context = replace(
            context,
            tool=tool.name,
            deadline=time.time() + tool.timeout,
            cancelled=type(context.cancelled)(),
            say=say and self._masked(say),
        )
        try:
            given = {**table.defaults, **arguments_of(arguments)}
            await self._count(offer, table, context)
        except CallFailed as error:
            result = failed(f"{offer.name}: {error}")
        else:
            self._running[offer.table] += 1
            try:
                result = await timed(tool.run(given, context), offer.name, tool.timeout, context)
            finally:
                self._running[offer.table] -= 1
        return self._finished(result, table.max_result)

    def _masked(self, say: Say) -> Say:
        return lambda text: say(self.masks.text(text))

    def _finished(self, result: ToolResult, most: int) -> ToolResult:
        if result.failed:
            return result._replace(content=self.masks.failure(result.text))
        masked = self.masks.content(result.content, most)
        length = len(result.content) if isinstance(result.content, str) else 0
        content, count, was_cut = cut(masked, most, length)
        return result._replace(content=content, characters=count, cut=was_cut)

    async def _count(self, offer: Offer, table: ToolConfig, context: ToolContext) -> None:
        """Take one of the calls it may have, or raise."""
        identity = offer.tool.id
        most, minute = table.calls_per_request, table.calls_per_minute
        if context.counts[identity] >= most:
            raise CallFailed(f"limit reached: at most {most} calls of it in one request")
        context.counts[identity] += 1
        if minute is None:
            return
        hold = Hold(f"tool:{context.client}:{identity}", 1, minute, _MINUTE)
        taken = await self.state.take(f"{context.request}:{os.urandom(6).hex()}", [hold])
        if taken.refused:
            wait = max(1, round(taken.wait))
            told = f"limit reached: at most {minute} calls of it a minute; again in {wait} s"
            raise CallFailed(told)

    def listing(self, client: str | None) -> list[Json]:
        """All tools with what they are for, one client's or everybody's, in config order."""
        return [
            row
            for table in self.tables.values()
            if is_for(table.config, client)
            for row in self._rows(table, client)
        ]

    def _rows(self, table: ToolTable, client: str | None) -> Iterator[Json]:
        config = table.config
        off = "" if config.enabled else "enabled = false"
        for tool in table.tools():
            row = {"id": tool.id, "kind": config.kind, "available": not off}
            row |= {"reason": off} if off else {"models": self._models(tool.id, table)}
            yield {**tool.declaration, "x_usetool": {"models": [], **row}}
        for identity, reason in table.reasons.items():
            row = {"id": identity, "kind": config.kind, "available": False, "models": []}
            row["reason"] = self.masks.text(reason)
            name = identity.rpartition(".")[2]
            yield {"type": "function", "function": {"name": name}, "x_usetool": row}

    def _models(self, identity: str, table: ToolTable) -> list[str]:
        name = table.config.id
        return [
            model.id
            for model in self.config.models.values()
            if any(matches(pattern, name, identity) for pattern in model.server_tools)
        ]

    async def begin(self) -> None:
        """Start the tables that did not run before; some go on starting beside the requests."""
        tasks = [asyncio.ensure_future(table.begin()) for table in self.tables.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=_START)

    async def end(self, following: ToolShelf | None = None) -> None:
        """Stop all tables but those the next config goes on with."""
        kept = [] if following is None else [*map(id, following.tables.values())]
        ending = [table for table in self.tables.values() if id(table) not in kept]
        await asyncio.gather(*(self._end(table, following is not None) for table in ending))

    async def _end(self, table: ToolTable, patient: bool) -> None:
        """Stop one; where others go on, not before its calls are over."""
        for _ in range(_MOST_STEPS if patient else 0):
            if not self._running[table.config.id]:
                break
            await asyncio.sleep(_STEP)
        await table.end()


def open_shelf(
    config: Config, before: ToolShelf | None, state: State, say: Callable[[str], None]
) -> ToolShelf | None:
    """The tools of a config; None: it has none. Nothing is started or loaded yet."""
    if not config.tools:
        return None
    kept = before.tables if before is not None else {}
    folder = Path(config.source).absolute().parent
    threads = before.threads if before is not None else Threads(say)
    around = TableContext(config, folder, state_folder(config) / "tools", threads, say)
    tables = {
        name: kept[name] if _is_same(kept.get(name), tool) else table_of(tool, around)
        for name, tool in config.tools.items()
    }
    return ToolShelf(config, tables, state, Masks(config, folder), threads)


def _is_same(table: ToolTable | None, config: ToolConfig) -> bool:
    return table is not None and table.config == config


def is_for(table: ToolConfig, client: str | None) -> bool:
    return client is None or not table.clients or client in table.clients


def _by_name(offers: Iterable[Offer]) -> dict[str, Offer]:
    """Of two with one name the later is called by its table too."""
    found: dict[str, Offer] = {}
    for offer in offers:
        if offer.name not in found:
            found[offer.name] = offer
            continue
        name = f"{offer.table}_{offer.name}"
        function = {**offer.declaration["function"], "name": name}
        found.setdefault(
            name, offer._replace(declaration={**offer.declaration, "function": function})
        )
    return found


def _session(request: ChatRequest, model: str) -> str:
    """What the client calls it, else the conversation by how it began."""
    metadata = request.params.get("metadata")
    named = request.call.session or (isinstance(metadata, dict) and metadata.get("session_id"))
    if named:
        return digest(request.call.owner, str(named)).hex()[:32]
    said = (one.get("content") for one in request.messages if one.get("role") == "user")
    return digest(request.call.owner, model, plain_text(next(said, "") or "")).hex()[:32]
