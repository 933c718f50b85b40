"""Our exchanges as vcrpy's interactions."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import responses

import yaml

from adapters.protocol import Json
from middleware.cassettes.cassette import Cassette, CassetteTurn, RecordedExchange
from middleware.cassettes.errors import UnreadableCassette
from middleware.cassettes.file.shape import address

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def to_vcrpy(cassette: Cassette) -> str:
    """A file that vcrpy reads by itself."""
    written = {"interactions": interactions(cassette), "version": 1}
    text: str = yaml.dump(written, Dumper=_DUMPER, allow_unicode=True, sort_keys=False)
    return text


def interactions(cassette: Cassette) -> list[Json]:
    """Everything that was answered; nothing at all would be played without a word."""
    found = [_interaction(exchange) for _, exchange in answered(cassette)]
    if not found and cassette.turns:
        raise UnreadableCassette(
            "The cassette",
            "it has no exchanges with upstreams, which other tools play; expected some. Record it "
            "anew, or serve it with `usetool replay`.",
        )
    return found


def answered(cassette: Cassette) -> Iterator[tuple[CassetteTurn, RecordedExchange]]:
    """The exchanges in which the upstream said something."""
    for turn in cassette.turns:
        yield from ((turn, exchange) for exchange in turn.exchanges if exchange.status)


def _interaction(exchange: RecordedExchange) -> Json:
    return {
        "request": {
            "method": exchange.method,
            "uri": _uri(exchange),
            "body": _shown(exchange.sent) or None,
            "headers": {"content-type": ["application/json"]} if exchange.sent else {},
        },
        "response": {
            "status": {"code": exchange.status, "message": responses.get(exchange.status, "")},
            "headers": {name: [value] for name, value in exchange.headers.items()},
            "body": {"string": _shown(exchange.body)},
        },
    }


def _uri(exchange: RecordedExchange) -> str:
    """Of what vcrpy itself recorded the address that it has to see again."""
    foreign = "://" in exchange.upstream
    return exchange.upstream + exchange.path if foreign else address(exchange)


def _shown(body: bytes) -> str | bytes:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body
