"""A shelf of the tools that a config of a test has."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from adapters.protocol import ChatRequest, RequestContext
from middleware import config
from middleware.state.memory import MemoryState
from middleware.tools.shelf import ToolShelf, open_shelf
from middleware.tools.tool import ToolContext, ToolResult

_MODEL = '[upstreams.up]\nkind = "scripted"\n[models.m]\nupstream = "up"\n'


@asynccontextmanager
async def shelf_of(
    text: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    told: list[str] | None = None,
    start: bool = True,
) -> AsyncIterator[ToolShelf]:
    """Started, with states and workspaces in a folder."""
    said = f'[state]\nfolder = "{folder}"\n{_MODEL}{text}'
    parsed = config.parse(said, environment=environment or {})
    shelf = open_shelf(parsed, None, MemoryState(), (told if told is not None else []).append)
    assert shelf is not None
    if start:
        await shelf.begin()
    try:
        yield shelf
    finally:
        await shelf.end()


def python_table(folder: Path, source: str, more: str = "") -> str:
    """A table of a file with this source."""
    (folder / "made.py").write_text(source, "utf-8")
    return f'[tools.t]\nkind = "python"\nmodule = "{folder}/made.py"\n{more}\n'


def context_of(shelf: ToolShelf, client: str = "default", said: str = "hi") -> ToolContext:
    call = RequestContext(client=client, owner=client)
    return shelf.context(ChatRequest("m", ({"role": "user", "content": said},), call=call), "m")


async def run(
    shelf: ToolShelf, name: str, arguments: object = None, context: ToolContext | None = None
) -> ToolResult:
    offer = shelf.find(name)
    assert offer is not None, [row["x_usetool"] for row in shelf.listing(None)]
    text: Any = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return await shelf.run(offer, text, context or context_of(shelf))
