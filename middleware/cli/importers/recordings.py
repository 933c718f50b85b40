"""Recordings of vcrpy, cassetter and pydantic-ai → a cassette.

They kept one client's HTTP, we keep what a client asks of the gateway: where the two are the same,
at OpenAI's chat completions, an exchange is a turn too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urlsplit

import orjson

from adapters.compatible import EncodedRequest
from adapters.compatible import exchange as conversation
from adapters.errors import GatewayError, Truncated, from_status
from adapters.protocol import Event, RequestContext
from adapters.shared.toolbox import Toolbox
from adapters.wire.exchange import Listener
from adapters.wire.http import Link, Transport
from middleware import __version__
from middleware.cassettes.asks import error_object, folded
from middleware.cassettes.bridges.foreign import read_exchange
from middleware.cassettes.cassette import (
    Cassette,
    CassetteTurn,
    Ended,
    ExchangeFailure,
    RecordedAnswer,
    RecordedExchange,
)
from middleware.cassettes.errors import UnreadableCassette
from middleware.cassettes.file.parser import parse
from middleware.doors import FALLBACK

FORMATS = ("vcrpy", "cassetter", "parsed_body")
"""Whose recordings are read; their forms tell them apart, so the name is for people."""
_KIND = "compatible"
_SHOWN = 5
_PATH = "/chat/completions"


class ImportedRecording(NamedTuple):
    cassette: Cassette
    remarks: tuple[str, ...]
    """What was left out, and why."""


def from_recording(text: str, path: str) -> ImportedRecording:
    """Read what the file at `path` holds, or raise an `UnreadableCassette` that names it."""
    turns: list[CassetteTurn] = []
    remarks = []
    for position, found in enumerate(_interactions(text, path), 1):
        try:
            turns.append(turn_of(len(turns) + 1, read_exchange(found)))
        except (ValueError, GatewayError) as error:
            remarks.append(f"interaction {position} is left out: {error}")
    if not turns:
        shown = [*remarks[:_SHOWN], "…"] if len(remarks) > _SHOWN else remarks
        told = [f"no call of {_PATH} that can be used; expected one", *shown]
        raise UnreadableCassette(path, "\n  ".join(told))
    routes = {
        turn.model: {"kind": _KIND, "upstream": turn.exchanges[0].upstream, "name": turn.model}
        for turn in turns
    }
    return ImportedRecording(Cassette(tuple(turns), routes, by=__version__), tuple(remarks))


def turn_of(number: int, exchange: RecordedExchange) -> CassetteTurn:
    """Read the answer as the gateway would; a `ValueError` says that it is in another language."""
    address = urlsplit(exchange.upstream + exchange.path)
    if exchange.method != "POST" or not address.path.endswith(_PATH):
        told = f"{exchange.method} {exchange.upstream}{address.path}"
        raise ValueError(f"{told} is another language")
    FALLBACK.parse(exchange.sent, repair=False, strict=False)
    upstream = (address.hostname or "upstream").removesuffix(".test")
    own = replace(exchange, upstream=upstream, path=_PATH)
    turn = CassetteTurn(number, orjson.loads(own.sent), RecordedAnswer(), exchanges=(own,))
    if own.status < 300:
        return _with_message(turn)
    return _failed(turn, from_status(own.status, own.headers, own.body, upstream, ()))


def _with_message(turn: CassetteTurn) -> CassetteTurn:
    (exchange,) = turn.exchanges
    call = RequestContext(turn.identity, streamed=turn.streamed)
    spoken = conversation(EncodedRequest({}, (), Toolbox()), call)
    listener = Listener(Link(exchange.upstream, "", Transport()), spoken, exchange.headers)
    events = listener.feed(exchange.body)
    if exchange.body and not listener.over and listener.failure is None:
        events += listener.feed(b"")
    if listener.failure is not None:
        return _failed(turn, listener.failure, events)
    return replace(turn, answer=folded(events))


def _failed(turn: CassetteTurn, error: GatewayError, said: Sequence[Event] = ()) -> CassetteTurn:
    """Whoever kept a failure in a recording meant it, and what was said before it broke off."""
    begun = folded(said) if said else RecordedAnswer(error.status)
    (exchange,) = turn.exchanges
    if exchange.status < 300:
        broken = ExchangeFailure(error.code or "", error.status, error.again, error.message)
        ended: Ended = "cut" if isinstance(error, Truncated) else "whole"
        exchange = replace(exchange, failure=broken, ended=ended)
    answer = replace(begun, error=error_object(error))
    return replace(turn, answer=answer, exchanges=(exchange,), ended=exchange.ended, kept=True)


def _interactions(text: str, path: str) -> list[object]:
    try:  # vcrpy's JSON has escapes that YAML does not
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = parse(text.encode(), path, binary=True).value
    listed = found.get("interactions") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        told = f"no list of 'interactions'; expected a file of {', '.join(FORMATS)}"
        raise UnreadableCassette(path, told)
    return listed
