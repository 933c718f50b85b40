"""Without keys the gateway answers to its own machine: not to a page that found its way here."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

import pytest

from adapters.errors import BadRequest
from middleware import config
from middleware.server.signposts import CHAT
from middleware.server.transport.hosts import Hosts
from tests.support.adapters import repeating
from tests.support.door import ANSWER, chat, door

Headers = Sequence[tuple[str, str]]
DEMO = '[upstreams.s]\nkind = "scripted"\n[models.m]\nupstream = "s"\n'
NAMED = 'hosts = ["Gateway.Example", "10.1.2.3:80", "fd00::1"]'
PAGES = 'cors_origins = ["https://Page.example", "null"]'


def code(headers: Headers, server: str = "", where: str = "127.0.0.1") -> str | None:
    """What a request with these headers is refused with."""
    hosts = Hosts(config.parse(f"[server]\n{server}\n{DEMO}", environment={}).server)
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    try:
        hosts.check({"type": "http", "headers": raw, "server": (where, 8000)})
    except BadRequest as error:
        return error.code
    return None


OWN = (
    *("127.0.0.1:8000", "127.0.0.1", "127.9.9.9:1", "localhost", "localhost:8000", "LOCALHOST:80"),
    *(
        "localhost.",
        "localhost.:8000",
        "app.localhost",
        "A.B.Localhost.:8000",
        "[::1]",
        "[::1]:8000",
    ),
    *("[0:0:0:0:0:0:0:1]:8000", "host.docker.internal:8000", "gateway.docker.internal"),
    *("host.containers.internal:8000", socket.gethostname()),
)
FOREIGN = (
    *("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example"),
    *("evillocalhost", "localhost@evil.example", "evil.example/localhost", "10.0.0.1:8000"),
    *("[::2]", "[::1]evil.example", "127.0.0.1:8000.evil.example", "127.0.0.1, evil.example"),
    *("", ".", "::1.evil.example", "0.0.0.0:8000", "2130706433", "internal", "docker.internal"),
)


@pytest.mark.parametrize("host", OWN)
def test_the_machines_own_names_are_answered(host: str) -> None:
    assert code([("host", host)]) is None
    assert code([("host", "localhost"), ("origin", f"http://{host}")]) is None
    assert code([("host", "localhost"), ("origin", f"HTTPS://{host}")]) is None


@pytest.mark.parametrize("host", FOREIGN)
def test_any_other_name_is_refused(host: str) -> None:
    assert code([("host", host)]) == "host_not_allowed"
    assert code([("host", "localhost"), ("origin", f"http://{host}")]) == "origin_not_allowed"


@pytest.mark.parametrize(
    "origin",
    ["null", "NULL", "", "https://", "evil.example", "http:/localhost", "data://localhost"],
)
def test_what_is_no_origin_of_this_machine_is_refused(origin: str) -> None:
    assert code([("host", "localhost"), ("origin", origin)]) == "origin_not_allowed"


@pytest.mark.parametrize("origin", ["file://", "app://obsidian.md", "tauri://localhost"])
def test_applications_on_this_machine_are_no_pages(origin: str) -> None:
    assert code([("host", "localhost"), ("origin", origin)]) is None


@pytest.mark.parametrize(
    "host", ["gateway.example", "GATEWAY.example.:8000", "10.1.2.3", "10.1.2.3:9", "[fd00::1]:8000"]
)
def test_names_of_the_config_are_answered(host: str) -> None:
    assert code([("host", host)]) == "host_not_allowed"
    assert code([("host", host)], NAMED) is None
    assert code([("host", "evil.example")], NAMED) == "host_not_allowed"


def test_every_name_may_be_allowed_and_no_page_with_it() -> None:
    assert code([("host", "evil.example")], 'hosts = ["*"]') is None
    page = [("host", "evil.example"), ("origin", "http://evil.example")]
    assert code(page, 'hosts = ["*"]') == "origin_not_allowed"


@pytest.mark.parametrize("origin", ["https://page.example", "HTTPS://PAGE.EXAMPLE", "null"])
def test_pages_of_the_config_may_call(origin: str) -> None:
    page = [("host", "localhost"), ("origin", origin)]
    assert code(page) == "origin_not_allowed"
    assert code(page, PAGES) is None
    assert code(page, 'cors_origins = ["*"]') is None
    assert code([("host", "evil.example"), page[1]], PAGES) == "host_not_allowed"


def test_a_page_of_another_port_or_scheme_is_another_page() -> None:
    for origin in ("https://page.example:8443", "http://page.example"):
        page = [("host", "localhost"), ("origin", origin)]
        assert code(page, PAGES) == "origin_not_allowed"


def test_of_two_origins_each_must_be_allowed() -> None:
    both = [("origin", "http://localhost"), ("origin", "https://evil.example")]
    assert code(both) == "origin_not_allowed"


@pytest.mark.parametrize(
    ("where", "host"), [("10.0.0.7", "10.0.0.7:80"), ("fd00::7", "[fd00:0::7]")]
)
def test_the_address_a_request_arrived_at_is_its_own(where: str, host: str) -> None:
    assert code([("host", host)], where=where) is None
    assert code([("host", host)]) == "host_not_allowed"


@pytest.mark.parametrize("name", ["http://a.example", "a/b", "", 5])
def test_a_name_with_more_than_a_name_is_a_mistake(name: object) -> None:
    with pytest.raises(config.ConfigError, match="without http:// and path"):
        config.parse(f"[server]\nhosts = [{name!r}]\n{DEMO}", environment={})


PATHS = (
    *(("POST", CHAT), ("POST", "/v1/embeddings"), ("GET", "/v1/models"), ("GET", "/v1/models/m")),
    *(("GET", "/v1/x_usetool/last"), ("GET", "/healthz"), ("GET", "/"), ("POST", "/v1/messages")),
    *(("POST", "/v1/responses"), ("POST", "/api/chat"), ("GET", "/api/tags")),
    *(("OPTIONS", CHAT), ("DELETE", CHAT), ("HEAD", "/v1/models")),
)
EVIL = (
    ([("host", "evil.example")], "host_not_allowed"),
    ([("host", "localhost"), ("origin", "https://evil.example")], "origin_not_allowed"),
)


@pytest.mark.parametrize(("headers", "wanted"), EVIL)
@pytest.mark.parametrize(("method", "path"), PATHS)
@pytest.mark.parametrize("server", ["", 'cors_origins = ["https://page.example"]'])
def test_every_path_is_closed_to_strangers_and_says_so_before_the_body(
    method: str, path: str, headers: Headers, wanted: str, server: str
) -> None:
    async def script() -> None:
        model = repeating(ANSWER)
        there = door(model, server)
        heard = await there.ask(chat(), method=method, path=path, headers=headers)
        key, said = "hosts" if wanted == "host_not_allowed" else "cors_origins", heard.body.decode()
        assert heard.status == 403
        assert f"{key} under [server]" in said
        assert "or set keys there" in said
        assert not [name for name in heard.headers if name.startswith("access-control")]
        assert model.asked == []
        (line,) = there.lines()
        assert (line["status"], line["path"], line["method"]) == (403, path, method)
        assert line["error"]["code"] == wanted
        if path != "/v1/x_usetool/last":
            (record,) = there.app.chat.records.of(None)
            assert (record.visit.status, record.body) == (403, b"")

    asyncio.run(script())


@pytest.mark.parametrize(("headers", "wanted"), EVIL)
def test_with_keys_the_key_decides(headers: Headers, wanted: str) -> None:
    async def script() -> None:
        there = door(repeating(ANSWER), 'keys = ["K"]')
        knock = [*headers, ("authorization", "Bearer K")]
        assert (await there.ask(chat(), headers=knock)).status == 200
        assert (await there.ask(chat(), headers=headers)).status == 401

    asyncio.run(script())


def test_an_allowed_page_asks_first_and_is_let_in() -> None:
    async def script() -> None:
        there = door(repeating(ANSWER), PAGES)
        page = [("host", "localhost:8000"), ("origin", "https://Page.example")]
        first = [*page, ("access-control-request-method", "POST")]
        heard = await there.ask(method="OPTIONS", headers=first)
        assert heard.status == 200
        assert heard.headers["access-control-allow-origin"] == "https://Page.example"
        assert (await there.ask(chat(), headers=page)).status == 200

    asyncio.run(script())
