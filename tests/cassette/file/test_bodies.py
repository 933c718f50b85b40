"""Bytes ↔ what people read of them: the very same bytes come back, whatever they were."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from middleware.cassettes.file.bodies import BODY, body_from_json, body_to_json
from middleware.cassettes.file.schema import Misshapen, checked
from tests.cassette.values import values
from tests.support.recordings import interactions, upstreams

JSON, SSE, NDJSON = "application/json", "text/event-stream; charset=utf-8", "application/x-ndjson"


def back(body: Any) -> bytes:
    return body_from_json(checked(body, BODY, "response.body"), "response.body")


FORMS = [
    (b"", SSE, {"text": ""}),
    (b'{"b":1,"a":[1.0,"\xc3\xa9"]}', JSON, {"json": {"b": 1, "a": [1.0, "é"]}}),
    (b'{"a":1}', "", {"json": {"a": 1}}),
    (b'{"a": 1}', JSON, {"text": '{"a": 1}'}),
    (b'{"a":1e5}', JSON, {"text": '{"a":1e5}'}),
    (b'{"a":1,"a":2}', JSON, {"text": '{"a":1,"a":2}'}),
    (b'{"a":"\\u00e9"}', JSON, {"text": '{"a":"\\u00e9"}'}),
    (
        b'{"a":123456789012345678901234567890}',
        JSON,
        {"text": '{"a":123456789012345678901234567890}'},
    ),
    (b"12", JSON, {"text": "12"}),
    (b"null", JSON, {"text": "null"}),
    (b'{"half', JSON, {"text": '{"half'}),
    (b"<html>\r\n", "text/html", {"text": "<html>\r\n"}),
    (b"\xff\xfe", JSON, {"base64": "//4="}),
    (b"data: a\n\ndata: b\n\n", SSE, {"events": ["data: a", "data: b"]}),
    (b"event: x\ndata: a\n\n", "TEXT/EVENT-STREAM", {"events": ["event: x\ndata: a"]}),
    (b"data: a\n\nda", SSE, {"events": ["data: a"], "rest": "da"}),
    (b"data: a\n\ndata: \xe6\xb2", SSE, {"base64": "ZGF0YTogYQoKZGF0YTog5rI="}),
    (b"data: a\r\n\r\nda", SSE, {"text": "data: a\r\n\r\nda"}),
    (b"data: a\r\n\ndata: b\n\n", SSE, {"events": ["data: a\r", "data: b"]}),
    (b": ping\n\n\ndata: a\n\n", SSE, {"events": [": ping", "\ndata: a"]}),
    (b"data: a\n\n\n\n", SSE, {"events": ["data: a", ""]}),
    (b'{"a":1}\n{"a":2}\n', NDJSON, {"lines": ['{"a":1}', '{"a":2}']}),
    (b'{"a":1}\n{"a"', NDJSON, {"lines": ['{"a":1}'], "rest": '{"a"'}),
    (b'{"error":"x"}', NDJSON, {"json": {"error": "x"}}),
]


@pytest.mark.parametrize(("body", "kind", "form"), FORMS)
def test_each_body_has_the_form_that_reads_best(body: bytes, kind: str, form: Any) -> None:
    assert body_to_json(body, kind) == form
    assert back(form) == body


@given(
    st.lists(
        st.sampled_from(
            [
                b"data: ",
                b"\n",
                b"\n\n",
                b"\r\n",
                b"\r",
                b"{",
                b"}",
                b'"a"',
                b":1",
                b"\xe6",
                b"\xb2",
                b" ",
            ]
        ),
        max_size=12,
    ),
    st.sampled_from([JSON, SSE, NDJSON, ""]),
)
def test_any_bytes_come_back(parts: list[bytes], kind: str) -> None:
    body = b"".join(parts)
    assert back(body_to_json(body, kind)) == body


@given(values())
def test_json_that_we_write_is_shown(value: Any) -> None:
    try:
        body = orjson.dumps({"a": value})
    except TypeError:  # integers of more than 64 bits
        return
    assert list(body_to_json(body, JSON)) == ["json"]
    assert back(body_to_json(body, JSON)) == body
    spaced = json.dumps({"a": value}).encode()
    assert back(body_to_json(spaced, JSON)) == spaced


def test_deep_json_is_text() -> None:
    shallow, deep, deeper = (b"[" * levels + b"]" * levels for levels in (60, 250, 900))
    assert list(body_to_json(shallow, JSON)) == ["json"]
    assert body_to_json(deep, JSON) == {"text": deep.decode()}
    assert body_to_json(deeper, JSON) == {"text": deeper.decode()}
    wide = b"[" + b",".join([b'{"a":"["}'] * 500) + b"]"
    assert list(body_to_json(wide, JSON)) == ["json"]


@pytest.mark.parametrize("upstream", upstreams(), ids=lambda upstream: upstream.name)
def test_what_was_recorded_of_real_upstreams(upstream: Any) -> None:
    for case in upstream.cases:
        for found in interactions(upstream.path(case)):
            shown = body_to_json(found.body, found.headers.get("content-type", ""))
            assert back(shown) == found.body
            assert not {"rest", "base64"} & shown.keys()


def test_written_by_hand() -> None:
    assert back({"events": ["data: a", "data: b"]}) == b"data: a\n\ndata: b\n\n"
    assert back({"json": {"big": 10**30}}) == b'{"big":1000000000000000000000000000000}'
    assert back({}) == b""


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"event": []}, "unknown key 'event'; expected json, events"),
        ({"event": []}, "Did you mean 'events'?"),
        ({"events": ["a", 1]}, "response.body.events[1]: 1; expected text"),
        ({"text": "a", "json": {}}, "a map; expected one of json, events"),
        ({"text": 5}, "response.body.text: 5; expected text"),
        ({"base64": "é"}, "expected base64"),
        ("data: a", "response.body: 'data: a'; expected a map of json"),
    ],
)
def test_mistakes_say_where_and_what_was_expected(body: Any, problem: str) -> None:
    with pytest.raises(Misshapen) as caught:
        back(body)
    assert problem in str(caught.value)
