"""MCP servers: listed, called, lost and found again."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.tools.shelves import run, shelf_of

SERVER = """
import json, os, sys
TOOLS = [("add", {"type": "object", "title": "T", "required": ["a"],
                  "properties": {"a": {"type": "integer"}}}), ("crash", {"type": "object"}),
         ("env", {"type": "object"}), ("fail", {"type": "object"})]
def text(words, **more): return {"content": [{"type": "text", "text": words}], **more}
def result(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"}}
    if method == "tools/list":
        at = int(params.get("cursor") or 0)
        page = [{"name": n, "inputSchema": s} for n, s in TOOLS[at:at + 2]]
        return {"tools": page, **({"nextCursor": str(at + 2)} if at + 2 < len(TOOLS) else {})}
    name, given = params["name"], params.get("arguments") or {}
    if name == "crash": os._exit(1)
    if name == "env": return text(" ".join(sorted(os.environ)))
    if name == "fail": return text("it broke", isError=True)
    return text(str(given["a"] + 1))
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print("no JSON")
        found = result(asked["method"], asked.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": found}), flush=True)
"""


def test_a_server_is_listed_called_and_started_again(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    table = (
        f'[tools.raw]\nkind = "mcp"\ncommand = ["{sys.executable}", "{tmp_path}/server.py"]\n'
        'env = { GIVEN = "yes" }\noverrides = { add = { name = "plus" } }\n'
    )

    async def whole() -> None:
        async with shelf_of(table, tmp_path, {"HIDDEN": "x"}) as shelf:
            offers = shelf.offers(["raw"], "default")
            assert [*offers] == ["plus", "crash", "env", "fail"]
            assert "title" not in offers["plus"].declaration["function"]["parameters"]
            assert (await run(shelf, "raw.add", {"a": 1})).text == "2"
            assert "'a' is a required property" in (await run(shelf, "plus", {})).text
            assert (await run(shelf, "fail")).text == "Error: fail: it broke"
            seen = (await run(shelf, "env")).text.split()
            assert "GIVEN" in seen
            assert "PYTEST_CURRENT_TEST" not in seen
            assert "'raw' is away" in (await run(shelf, "crash")).text
            assert (await run(shelf, "plus", {"a": 2})).text == "3"

    asyncio.run(whole())


def test_one_that_does_not_start_says_why(tmp_path: Path) -> None:
    table = '[tools.gone]\nkind = "mcp"\ncommand = ["no-such-command-here"]\n'

    async def whole() -> None:
        async with shelf_of(table, tmp_path) as shelf:
            row = shelf.listing(None)[0]["x_usetool"]
        assert not row["available"]
        assert "no-such-command-here" in row["reason"]

    asyncio.run(whole())
