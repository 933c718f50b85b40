"""Where no key is asked, a page of another site cannot have an answer as its image or frame."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.adapters import repeating
from tests.support.door import ANSWER, Heard, door

CROSS = ("sec-fetch-site", "cross-site")
IMAGE = (CROSS, ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image"))
FRAME = (CROSS, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe"))
LINK = (CROSS, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document"))
ORIGIN = ("origin", "https://page.example")


def ask(
    headers: tuple[tuple[str, str], ...], path: str, server: str = "", method: str = "GET"
) -> Heard:
    there = door(repeating(ANSWER), server)
    return asyncio.run(there.ask(method=method, path=path, headers=headers))


@pytest.mark.parametrize("headers", [IMAGE, FRAME, (CROSS,)])
@pytest.mark.parametrize("path", ["/v1/models", "/v1/x_usetool/last", "/healthz", "/"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_part_of_another_sites_page_is_refused(
    headers: tuple[tuple[str, str], ...], path: str, method: str
) -> None:
    heard = ask(headers, path, method=method)
    assert heard.status == 403
    if method == "GET":
        assert heard.error()["code"] == "origin_not_allowed"
        assert "may link to it, but not show" in heard.error()["message"]


@pytest.mark.parametrize("path", ["/v1/models", "/healthz", "/docs", "/"])
def test_a_link_of_another_site_leads_here(path: str) -> None:
    assert ask(LINK, path).status == ask((), path).status == 200


@pytest.mark.parametrize("site", ["same-origin", "same-site", "none"])
def test_this_machines_own_pages_may_have_images_of_it(site: str) -> None:
    assert ask((("sec-fetch-site", site), *IMAGE[1:]), "/v1/models").status == 200


def test_of_what_is_said_twice_the_last_counts() -> None:
    own = ("sec-fetch-site", "none")
    assert ask((own, *IMAGE), "/v1/models").status == 403
    assert ask((*IMAGE, own), "/v1/models").status == 200


def test_where_the_origin_is_said_it_decides() -> None:
    assert ask((*IMAGE, ORIGIN), "/v1/models").status == 403
    named = f'cors_origins = ["{ORIGIN[1]}"]'
    assert ask((*IMAGE, ORIGIN), "/v1/models", named).status == 200
    assert ask(IMAGE, "/v1/models", named).status == 403


def test_where_all_pages_may_call_or_a_key_is_asked_nothing_else_is_looked_at() -> None:
    assert ask(IMAGE, "/v1/models", 'cors_origins = ["*"]').status == 200
    key = ("authorization", "Bearer K")
    assert ask((*IMAGE, key), "/v1/models", 'keys = ["K"]').status == 200
