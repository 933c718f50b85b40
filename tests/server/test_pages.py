"""The pages for people: what they say, to whom, and that they need nothing from elsewhere."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from html.parser import HTMLParser

import orjson
import pytest

from middleware import config
from middleware.server.api.reference import page, reference
from middleware.server.app import create
from tests.support.door import Door, Heard, door

HTML = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
PAGES = ("/", "/docs", "/openapi.json")
KEYLESS = """
[recall]
store = "off"
[upstreams.claude]
kind = "claude"
api_key = "env:NONE"
[models.sonnet]
upstream = "claude"
name = "claude-sonnet-4-5"
"""
Headers = Sequence[tuple[str, str]]


def asked(path: str, *headers: tuple[str, str], method: str = "GET", server: str = "") -> Heard:
    async def script() -> Heard:
        return await door(server=server).ask(method=method, path=path, headers=headers)

    return asyncio.run(asyncio.wait_for(script(), 20))


class Loads(HTMLParser):
    """Collects what a browser would fetch for a page, where its links lead, and its ids."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "src" or (name == "href" and tag != "a"):
                self.fetched.append(value or "")
            elif name == "href":
                self.links.append(value or "")
            elif name == "id":
                self.ids.append(value or "")


def test_the_first_page_says_what_to_paste_and_which_models_there_are() -> None:
    heard = asked("/", HTML, ("host", "localhost:8123"))
    assert heard.status == 200
    assert heard.headers["content-type"] == "text/html; charset=utf-8"
    assert heard.headers["vary"] == "accept"
    text = heard.body.decode()
    assert "<code>http://localhost:8123/v1</code>" in text
    assert "<td>demo</td>" in text
    assert {"/docs", "/openapi.json"} <= set(Loads(text).links)


@pytest.mark.parametrize("accept", [(), (("accept", "*/*"),), (("accept", "application/json"),)])
def test_a_program_gets_the_words_that_clients_of_ollama_compare(accept: Headers) -> None:
    heard = asked("/", *accept, ("host", "localhost:8123"))
    assert (heard.status, heard.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert heard.body == b"Ollama is running"


def test_where_keys_are_asked_pages_open_without_one_and_name_no_model() -> None:
    for path in PAGES:
        heard = asked(path, HTML, server='keys = ["K-e-y"]')
        assert heard.status == 200
        assert "demo" not in heard.body.decode()
        assert "K-e-y" not in heard.body.decode()


def test_a_gateway_without_a_model_says_what_to_do() -> None:
    async def script() -> Heard:
        app = create(config.parse(KEYLESS, environment={}), io.StringIO())
        return await Door(app, io.StringIO()).ask(method="GET", path="/", headers=[HTML])

    text = asyncio.run(script()).body.decode()
    assert "<code>usetool check</code>" in text
    assert "<td>not available: the environment variable NONE is not set</td>" in text


@pytest.mark.parametrize("path", [*PAGES, "/healthz", "/readyz", "/v1/models"])
def test_head_answers_where_get_does(path: str) -> None:
    heard, whole = asked(path, method="HEAD"), asked(path)
    assert heard.status == whole.status == 200
    assert heard.headers["content-length"] == whole.headers["content-length"]
    assert heard.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize("path", PAGES)
def test_a_name_that_is_not_this_machines_gets_nothing(path: str) -> None:
    heard = asked(path, HTML, ("host", "evil.example"))
    assert (heard.status, heard.error()["code"]) == (403, "host_not_allowed")


@pytest.mark.parametrize("path", PAGES)
def test_pages_of_other_origins_read_them_only_where_the_config_says_so(path: str) -> None:
    heard = asked(path, ("origin", "https://evil.example"))
    assert (heard.status, heard.error()["code"]) == (403, "origin_not_allowed")
    allowed = asked(
        path, ("origin", "https://app.example"), server='cors_origins = ["https://app.example"]'
    )
    assert allowed.headers["access-control-allow-origin"] == "https://app.example"


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_loads_and_runs_nothing(path: str) -> None:
    heard = asked(path, HTML)
    found = Loads(heard.body.decode())
    assert found.fetched == ["data:,"]
    assert not {"script", "iframe", "img", "object", "embed", "form"} & set(found.tags)
    assert "url(" not in heard.body.decode()
    assert "@import" not in heard.body.decode()
    assert all(link[0] in "/#" for link in found.links)
    assert heard.headers["content-security-policy"].startswith("default-src 'none';")
    assert heard.headers["x-content-type-options"] == "nosniff"


def test_the_documentation_names_every_path_shape_and_header() -> None:
    document = orjson.loads(asked("/openapi.json").body)
    text = asked("/docs").body.decode()
    found = Loads(text)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert f"<code>{method.upper()} {path}</code>" in text
            assert operation["operationId"] in found.ids
    shapes = {f"shape-{name}" for name in document["components"]["schemas"]}
    assert shapes <= set(found.ids)
    assert {link[1:] for link in found.links if link[0] == "#"} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    for name in ("x-request-id", "x-upstream-model", "x-usetool-warnings", "retry-after"):
        assert f"<code>{name}</code>" in text


def test_whatever_a_page_holds_is_text() -> None:
    bad = "<script>alert(1)</script>\"'&"
    model = {"type": "object", "description": bad, "required": [bad], "properties": {}}
    model["properties"] = {bad: {"enum": [bad], "description": bad}}
    parameter = {"name": bad, "in": bad, "schema": {"type": "string", "pattern": bad}}
    answer = {
        "description": bad,
        "headers": {bad: {"description": bad}},
        "content": {bad: {"schema": {"$ref": bad}}},
    }
    operation = {
        "summary": bad,
        "description": bad,
        "operationId": bad,
        "parameters": [parameter],
        "responses": {bad: answer},
    }
    html = reference(
        {
            "info": {"title": bad, "version": bad, "description": f"a `{bad}`"},
            "paths": {bad: {bad: operation}},
            "components": {"schemas": {bad: model}},
        }
    )
    assert "script" not in Loads(html).tags
    assert "<script" not in html.lower()
    assert "<script" not in page(bad, "")


def test_a_models_name_and_the_host_are_text() -> None:
    stanza = '[models."<b>x</b>"]\nupstream = "script"'
    text = asked("/", HTML, ("host", "<i>.localhost"), server=stanza).body.decode()
    assert "<td>&lt;b&gt;x&lt;/b&gt;</td>" in text
    assert not {"b", "i"} & set(Loads(text).tags)


def test_the_documentation_begins_with_what_is_sent_and_shows_one() -> None:
    text = asked("/docs").body.decode()
    shapes = [name for name in Loads(text).ids if name.startswith("shape-")]
    assert shapes[:2] == ["shape-ChatBody", "shape-Completion"]
    assert "&quot;content&quot;: &quot;Hello&quot;" in text
    assert "<th></th>" not in text
    assert str(2**63) not in text
    assert text.count("Names this request: ") == 1
    assert "More than 1 is refused." in text
