"""HTTP tools: what is sent, what comes back, and which addresses are never reached."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from middleware import config
from middleware.tools.addresses import Destination, Guard
from middleware.tools.http import request_of
from middleware.tools.python.threads import Threads
from middleware.tools.tool import CallFailed
from tests.tools.shelves import run, shelf_of

_TABLE = """
[tools.orders]
kind = "http"
method = "{method}"
url = "https://h.example/orders/{{id}}?v=1"
parameters = {{ type = "object", properties = {{ id = {{}}, tags = {{}}, on = {{}} }} }}
[upstreams.up]
kind = "scripted"
[models.m]
upstream = "up"
"""
_FETCH = """
[tools.fetch]
kind = "http"
url = "{url}"
parameters = { type = "object", properties = { url = { type = "string" } }, required = ["url"] }
"""


def written(method: str, **arguments: object) -> tuple[str, bytes | None]:
    parsed = config.parse(_TABLE.format(method=method), environment={})
    request = request_of(parsed.tools["orders"], arguments)
    return request.url.removeprefix("https://h.example"), request.body


def test_arguments_go_to_path_query_and_body() -> None:
    assert written("GET", id="a/../b?c#%\r\n", tags=["x", 2], on=True, off=None) == (
        "/orders/a%2F..%2Fb%3Fc%23%25%0D%0A?v=1&tags=x&tags=2&on=true",
        None,
    )
    path, body = written("POST", id=7, on=False)
    assert (path, json.loads(body or b"")) == ("/orders/7?v=1", {"on": False})


@pytest.mark.parametrize("value", ["", ".", ".."])
def test_a_part_of_a_path_is_a_part(value: str) -> None:
    with pytest.raises(CallFailed, match="id"):
        written("GET", id=value)


def led(address: str, *allow: str) -> Destination:
    """Where an address leads."""

    async def whole() -> Destination:
        return await Guard(allow, Threads(print).share()).destination(address)

    return asyncio.run(whole())


@pytest.mark.parametrize(
    "address",
    [
        *("http://127.0.0.1/", "http://localhost:1/", "http://2130706433/", "http://0x7f.1/"),
        *("http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[64:ff9b::7f00:1]/"),
        *("http://[2002:7f00:1::]/", "http://10.0.0.1/", "http://169.254.169.254/latest"),
        *("http://100.100.100.200/", "http://224.0.0.1/", "http://0.0.0.0/", "http://[fe80::1]/"),
        *("http://a:b@8.8.8.8/", "file:///etc/passwd", "//8.8.8.8/", "http:/8.8.8.8/"),
        *("http://127.0.0.1\\@8.8.8.8/", " http://8.8.8.8/", "http://[::127.0.0.1]/"),
    ],
)
def test_what_is_not_public_is_not_reached(address: str) -> None:
    with pytest.raises(CallFailed, match="not allowed"):
        led(address)


def test_public_addresses_and_allowed_ones_are_reached() -> None:
    assert led("https://8.8.8.8/x").addresses == ("8.8.8.8",)
    there = led("http://127.0.0.1:81/", "127.0.0.1:81")
    assert there.addresses == ("127.0.0.1",)
    with pytest.raises(CallFailed):
        led("http://localhost:81/", "127.0.0.1:81")


@asynccontextmanager
async def service() -> AsyncIterator[str]:
    """Answers as each path says; gives `host:port`."""

    async def answer(request: web.Request) -> web.StreamResponse:
        path = request.path
        if path == "/away":
            raise web.HTTPFound("http://127.0.0.1:1/")
        if path == "/round":
            raise web.HTTPFound("/round")
        if path == "/latin":
            return web.Response(
                body="é".encode("latin-1"), content_type="text/plain", charset="latin-1"
            )
        if path == "/bytes":
            return web.Response(body=b"\xff\xfe\x00", content_type="application/octet-stream")
        if path == "/broken":
            return web.Response(text="too much", status=418)
        return web.Response(text=request.headers.get("k", "none"))

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield "{}:{}".format(*runner.addresses[0])
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/latin", "é"),
        ("/bytes", "application/octet-stream"),
        ("/broken", "status 418: too much"),
        ("/away", "not allowed"),
        ("/round", "redirect"),
        ("/plain", "none"),
    ],
)
def test_answers_are_given_as_they_came(path: str, words: str, tmp_path: Path) -> None:
    async def whole() -> None:
        async with service() as where:
            table = f'{_FETCH}allow = ["{where}"]\n'
            async with shelf_of(table, tmp_path) as shelf:
                result = await run(shelf, "fetch", {"url": f"http://{where}{path}"})
        assert words in result.text

    asyncio.run(whole())


def test_a_table_without_its_secret_is_not_available(tmp_path: Path) -> None:
    table = f'{_FETCH}headers = {{ k = "env:NOT_THERE" }}\n[tools.search]\nkind = "tavily"\n'

    async def whole() -> None:
        async with shelf_of(table, tmp_path) as shelf:
            reasons = [row["x_usetool"]["reason"] for row in shelf.listing(None)]
        assert ["NOT_THERE" in reasons[0], "TAVILY_API_KEY" in reasons[1]] == [True, True]

    asyncio.run(whole())
