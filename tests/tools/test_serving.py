"""The tools of a gateway that serves: its list, and what a changed config does to them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from middleware import config
from tests.support.day_one import running
from tests.tools.shelves import python_table

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
