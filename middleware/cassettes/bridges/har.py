"""A cassette as an HTTP archive (HAR 1.2), which browsers and proxies show as a waterfall."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.client import responses
from urllib.parse import parse_qsl, urlsplit

import orjson

from middleware.cassettes.bridges.interactions import answered
from middleware.cassettes.cassette import Cassette, CassetteTurn, RecordedExchange
from middleware.cassettes.file.shape import address

_Part = Mapping[str, object]
_HTTP: Mapping[str, object] = {"httpVersion": "HTTP/1.1", "cookies": (), "headersSize": -1}


def to_har(cassette: Cassette) -> str:
    """Of the time of day only the order is known: a session begins with the day."""
    day = datetime(1970, 1, 1, tzinfo=UTC)
    with suppress(ValueError):
        day = datetime.fromisoformat(cassette.recorded).replace(tzinfo=UTC)
    entries = [_entry(turn, exchange, day) for turn, exchange in answered(cassette)]
    creator = {"name": "usetool", "version": cassette.by}
    log = {"version": "1.2", "creator": creator, "entries": entries}
    return orjson.dumps({"log": log}, option=orjson.OPT_INDENT_2).decode() + "\n"


def _entry(turn: CassetteTurn, exchange: RecordedExchange, day: datetime) -> _Part:
    started = day + timedelta(milliseconds=turn.at)
    waits = [wait for wait, _ in exchange.pieces]
    return {
        "startedDateTime": started.isoformat(timespec="milliseconds"),
        "time": sum(waits),
        "request": _request(exchange),
        "response": _response(exchange),
        "cache": {},
        "timings": {"send": 0, "wait": sum(waits[:1]), "receive": sum(waits[1:])},
        "comment": f"turn {turn.number}",
    }


def _request(exchange: RecordedExchange) -> _Part:
    url = address(exchange)
    sent = exchange.sent.decode("utf-8", "replace")
    posted = {"postData": {"mimeType": "application/json", "text": sent}} if sent else {}
    return {
        "method": exchange.method,
        "url": url,
        **_HTTP,
        "headers": (),
        "queryString": _named(parse_qsl(urlsplit(url).query, keep_blank_values=True)),
        **posted,
        "bodySize": len(exchange.sent),
    }


def _response(exchange: RecordedExchange) -> _Part:
    headers, body = exchange.headers, exchange.body
    content = {"size": len(body), "mimeType": headers.get("content-type", "")}
    try:
        content |= {"text": body.decode()}
    except UnicodeDecodeError:
        content |= {"text": base64.b64encode(body).decode(), "encoding": "base64"}
    return {
        "status": exchange.status,
        "statusText": responses.get(exchange.status, ""),
        **_HTTP,
        "headers": _named(headers.items()),
        "content": content,
        "redirectURL": headers.get("location", ""),
        "bodySize": len(body),
    }


def _named(pairs: Iterable[tuple[str, str]]) -> list[_Part]:
    return [{"name": name, "value": value} for name, value in pairs]
