"""The tools of a gateway that serves: its list, and what a changed config does to them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from middleware import config
from middleware.tools.shelf import open_shelf
from tests.support.day_one import running
from tests.tools.shelves import python_table, run, shelf_of

_GATEWAY = """
[server]
keys = ["K"]
[clients.other]
key = "K2"
[upstreams.u]
kind = "scripted"
[models.m]
upstream = "u"
server_tools = ["t"]
"""
_SOURCE = "class Box:\n    def start(self): print('', end='')\n    def put(self, thing: str): ...\n"


def test_each_client_sees_its_own_tools(tmp_path: Path) -> None:
    table = python_table(tmp_path, "def one(): ...\n", 'clients = ["other"]')

    async def whole() -> None:
        async with running(_GATEWAY + table) as gateway:
            assert (await gateway.get("/v1/tools"))[0] == 401
            assert (await gateway.get("/v1/tools", "K"))[1] == {"object": "list", "data": []}
            rows = (await gateway.get("/v1/tools", "K2"))[1]["data"]
        assert rows[0]["function"]["name"] == "one"
        facts = {"id": "t.one", "kind": "python", "available": True, "models": ["m"]}
        assert rows[0]["x_usetool"] == facts

    asyncio.run(whole())


def test_a_table_that_did_not_change_goes_on(tmp_path: Path) -> None:
    table = python_table(tmp_path, _SOURCE, 'functions = ["Box"]')
    more = '[tools.new]\nkind = "tavily"\n'

    async def whole() -> None:
        async with running(_GATEWAY + table) as gateway:
            app = gateway.app
            before = app.chat.runtime.shared.tools
            text = f'[recall]\nstore = "off"\n{_GATEWAY}{table}'
            after = app.prepare(config.parse(text + more, environment={})).shared.tools
            other = text.replace('"Box"', '"Other"')
            changed = app.prepare(config.parse(other, environment={})).shared.tools
        assert before
        assert after
        assert changed
        assert after.tables["t"] is before.tables["t"]
        assert changed.tables["t"] is not before.tables["t"]

    asyncio.run(whole())


_OLD = """
import time
class Box:
    stopped = False
    def stop(self): Box.stopped = True
    def slow(self) -> str:
        time.sleep(0.4)
        return "stopped" if Box.stopped else "old"
"""


def test_a_call_at_work_goes_on_with_what_it_began_with(tmp_path: Path) -> None:
    more = 'functions = ["Box"]\ncalls_per_minute = 2'

    def parsed(table: str) -> config.Config:
        text = f'[state]\nfolder = "{tmp_path}"\n{_GATEWAY}{table}'
        return config.parse(text, environment={})

    async def whole() -> None:
        async with shelf_of(python_table(tmp_path, _OLD, more), tmp_path) as old:
            at_work = asyncio.ensure_future(run(old, "slow"))
            await asyncio.sleep(0.1)
            changed = python_table(tmp_path, _OLD.replace('"old"', '"new"'), more + "\ntimeout = 5")
            new = open_shelf(parsed(changed), old, old.state, print)
            assert new
            await new.begin()
            ending = asyncio.ensure_future(old.end(new))
            assert (await run(new, "slow")).text == "new"
            assert (await at_work).text == "old"
            await ending
            assert "a minute" in (await run(new, "slow")).text  # what was counted stays counted
            await new.end()

    asyncio.run(whole())
