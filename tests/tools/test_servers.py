"""MCP servers: listed, called, killed and found again."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from middleware.tools.shelf import ToolShelf
from tests.tools.mcp_servers import free_port, served, stdio_table
from tests.tools.shelves import run, shelf_of


def test_a_server_is_listed_called_and_started_again(tmp_path: Path) -> None:
    table = stdio_table(
        tmp_path, 'env = { GIVEN = "yes" }\noverrides = { add = { name = "plus" } }'
    )

    async def whole() -> None:
        async with shelf_of(table, tmp_path, {"HIDDEN": "x"}) as shelf:
            offers = shelf.offers(["raw"], "default")
            assert [*offers][:4] == ["plus", "crash", "env", "fail"]
            assert "title" not in offers["plus"].declaration["function"]["parameters"]
            assert (await run(shelf, "raw.add", {"a": 1})).text == "2"
            assert "required property 'a' is missing" in (await run(shelf, "plus", {})).text
            assert (await run(shelf, "fail")).text == "Error: fail: it broke"
            seen = {*(await run(shelf, "env")).text.split()}
            assert "GIVEN" in seen
            assert seen <= {"GIVEN", "PATH", "HOME", "LANG", "TMPDIR", "USER", "LC_CTYPE"}
            assert "'raw' is away" in (await run(shelf, "crash")).text
            assert (await run(shelf, "plus", {"a": 2})).text == "3"

    asyncio.run(whole())


def test_one_that_is_killed_in_a_call_leaves_nothing_behind(tmp_path: Path) -> None:
    async def whole() -> None:
        async with shelf_of(stdio_table(tmp_path), tmp_path) as shelf:
            server, child = map(int, (await run(shelf, "pids")).text.split())
            hanging = asyncio.ensure_future(run(shelf, "hang"))
            await asyncio.sleep(0.1)
            os.kill(server, signal.SIGKILL)
            result = await hanging
            assert result.failed
            assert "the MCP server of 'raw' is away" in result.text
            assert (await run(shelf, "add", {"a": 2})).text == "3"
            assert not is_alive(child)
            last, _ = map(int, (await run(shelf, "pids")).text.split())
        assert not is_alive(last)

    asyncio.run(whole())


def test_a_line_without_an_end_ends_the_server(tmp_path: Path) -> None:
    told: list[str] = []

    async def whole() -> None:
        async with shelf_of(stdio_table(tmp_path), tmp_path, told=told) as shelf:
            assert "is away" in (await run(shelf, "flood")).text
            assert (await run(shelf, "add", {"a": 2})).text == "3"

    asyncio.run(whole())
    assert told == ["tools.raw: the MCP server is ended: it wrote a line of more than 16 MB"]


def test_one_over_http_that_is_killed_in_a_call_is_found_again(tmp_path: Path) -> None:
    port = free_port()
    table = f'[tools.web]\nkind = "mcp"\nurl = "http://127.0.0.1:{port}/mcp"\n'

    async def killed(shelf: ToolShelf) -> str:
        with served(tmp_path, port) as process:
            await shelf.begin()
            assert (await run(shelf, "add", {"a": 1})).text == "2"
            hanging = asyncio.ensure_future(run(shelf, "hang"))
            await asyncio.sleep(0.1)
            process.kill()
            return (await hanging).text

    async def whole() -> None:
        async with shelf_of(table, tmp_path, start=False) as shelf:
            assert "the MCP server of 'web' is away" in await killed(shelf)
            with served(tmp_path, port):
                assert (await run(shelf, "add", {"a": 2})).text == "3"
            with served(tmp_path, port):  # the session is lost between two calls
                assert (await run(shelf, "add", {"a": 3})).text == "4"
                assert "more than 16 MB" in (await run(shelf, "flood")).text

    asyncio.run(whole())


def test_one_that_does_not_start_says_why(tmp_path: Path) -> None:
    table = '[tools.gone]\nkind = "mcp"\ncommand = ["no-such-command-here"]\n'

    async def whole() -> None:
        async with shelf_of(table, tmp_path) as shelf:
            row = shelf.listing(None)[0]["x_usetool"]
        assert not row["available"]
        assert "no-such-command-here" in row["reason"]

    asyncio.run(whole())


def is_alive(process: int) -> bool:
    """A child that has ended and was not yet asked for is not."""
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text("utf-8").split()[2]
    except FileNotFoundError:
        return False
