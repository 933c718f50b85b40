"""Only rate limits and the request id pass to the client, under OpenAI's names."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from multidict import CIMultiDict

from adapters.wire.headers import for_client, request_id

DATE = "Wed, 18 Nov 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({}, {}),
        ({"request-id": "req_1"}, {"x-upstream-request-id": "req_1"}),
        ({"x-ds-trace-id": "t"}, {"x-upstream-request-id": "t"}),
        ({"X-Request-ID": "r"}, {"x-upstream-request-id": "r"}),
        (
            {"anthropic-ratelimit-requests-remaining": "9"},
            {"x-ratelimit-remaining-requests": "9"},
        ),
        (
            {"date": DATE, "anthropic-ratelimit-tokens-reset": "2026-11-18T10:01:30Z"},
            {"x-ratelimit-reset-tokens": "90s"},
        ),
        (
            {"date": DATE, "anthropic-ratelimit-tokens-reset": "2026-11-18T09:59:00+00:00"},
            {"x-ratelimit-reset-tokens": "0s"},
        ),
        (
            {"anthropic-ratelimit-tokens-reset": "2026-11-18T10:01:30Z"},
            {"x-ratelimit-reset-tokens": "2026-11-18T10:01:30Z"},
        ),
        (  # a Date without a zone, and one beyond all zones
            {
                "date": DATE.replace("GMT", "-0000"),
                "anthropic-ratelimit-tokens-reset": "2026-11-18T10:01:30Z",
            },
            {"x-ratelimit-reset-tokens": "90s"},
        ),
        (
            {
                "date": DATE.replace("GMT", "+99999999999999"),
                "anthropic-ratelimit-tokens-reset": "2026-11-18T10:01:30Z",
            },
            {"x-ratelimit-reset-tokens": "2026-11-18T10:01:30Z"},
        ),
        (
            {"date": DATE, "x-ratelimit-reset-requests": "1m2s"},
            {"x-ratelimit-reset-requests": "1m2s"},
        ),
        ({"x-ratelimit-limit-tokens": "0"}, {"x-ratelimit-limit-tokens": "0"}),
    ],
)
def test_headers_for_the_client(headers: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    assert for_client(CIMultiDict(headers)) == wanted


def test_nothing_else_passes() -> None:
    private = {
        "set-cookie": "a=b",
        "authorization": "Bearer x",
        "openai-organization": "org-1",
        "anthropic-organization-id": "o",
        "content-encoding": "gzip",
        "content-length": "5",
        "x-ratelimit-limit-project-tokens": "1",
    }
    assert for_client(CIMultiDict(private)) == {}


def test_the_upstreams_own_id_comes_before_a_proxys() -> None:
    assert request_id({"x-request-id": "proxy", "request-id": "own"}) == "own"
    assert request_id({}) == ""
