"""`usetool tools`: the tools the gateway runs itself, and one of them tried out."""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from middleware.cli.command import FINE, LACKING, WronglyUsed, add_configured, complain, say

if TYPE_CHECKING:
    from middleware.config import Config
    from middleware.tools.shelf import ToolShelf

_ABOUT = """\
Lists the tools of the config's [tools] as GET /v1/tools does, for all clients: modules are loaded
and MCP servers started for it. `usetool tools call NAME JSON` runs one as a model would.

Exit code of a call: 0 a result, 1 an error result, 2 there is no such tool, or no JSON.
"""
_Outcome = TypeVar("_Outcome")


def add(commands: Any) -> None:
    tools = add_configured(commands, "tools", "list server tools, run one", _ABOUT, run)
    tools.add_argument("--json", action="store_true", help="print it for programs")
    call = tools.add_subparsers(metavar="call").add_parser("call", help="run one")
    call.add_argument("name", metavar="NAME", help="its id or name")
    call.add_argument("arguments", nargs="?", metavar="JSON", help="its arguments", default="{}")
    call.add_argument("--config", default=argparse.SUPPRESS, metavar="FILE")
    call.set_defaults(command=run_one)


def run(options: argparse.Namespace) -> int:
    from middleware.config import load

    return with_shelf(load(options.config), lambda shelf: _list(shelf, options.json))


def run_one(options: argparse.Namespace) -> int:
    from middleware.config import load

    name, arguments = options.name, options.arguments
    return with_shelf(load(options.config), lambda shelf: _call(shelf, name, arguments))


def with_shelf(config: Config, work: Callable[[ToolShelf | None], Awaitable[_Outcome]]) -> _Outcome:
    """Run something beside the started tools of a config."""
    import asyncio

    from middleware.state.memory import MemoryState
    from middleware.tools.shelf import open_shelf

    async def whole() -> _Outcome:
        shelf = open_shelf(config, None, MemoryState(), complain)
        if shelf is None:
            return await work(None)
        try:
            await shelf.begin()
            return await work(shelf)
        finally:
            await shelf.end()

    return asyncio.run(whole())


def missing(config: Config) -> list[str]:
    """Tools that are not available, and why."""

    async def rows(shelf: ToolShelf | None) -> list[str]:
        found = [row["x_usetool"] for row in (shelf.listing(None) if shelf is not None else [])]
        return [f"tools.{one['id']}: {one['reason']}" for one in found if "reason" in one]

    return with_shelf(config, rows)


async def _list(shelf: ToolShelf | None, as_json: bool) -> int:
    from middleware.cli.describe import columns

    found = shelf.listing(None) if shelf is not None else []
    if as_json:
        say(json.dumps({"object": "list", "data": found}, ensure_ascii=False))
        return FINE
    if not found:
        say("The config has no [tools].")
        return FINE
    rows = [("id", "kind", "models", "description")]
    for row in found:
        facts, function = row["x_usetool"], row["function"]
        told = f"not available: {facts['reason']}" if "reason" in facts else ""
        shown = told or function.get("description", "")
        rows.append((facts["id"], facts["kind"], ", ".join(facts["models"]) or "-", shown))
    say(columns(rows, indent=""))
    return FINE


async def _call(shelf: ToolShelf | None, name: str, arguments: str) -> int:
    from adapters.protocol import ChatRequest, RequestContext

    offer = shelf.find(name) if shelf is not None else None
    if shelf is None or offer is None:
        raise WronglyUsed(f"There is no tool '{name}'. `usetool tools` lists those there are.")
    try:
        json.loads(arguments)
    except ValueError as error:
        raise WronglyUsed(f"The arguments are no JSON: {error}") from error
    call = RequestContext(id="req_cli", owner="cli")
    context = shelf.context(ChatRequest("", (), call=call), "")
    result = await shelf.run(offer, arguments, context)
    if isinstance(result.content, str):
        say(result.content)
    else:
        say(json.dumps(result.content, ensure_ascii=False))
    return LACKING if result.failed else FINE
