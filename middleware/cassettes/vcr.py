"""A serializer for vcrpy: `deserialize` gives it exchanges, `serialize` writes what it recorded.

recorder = vcr.VCR(serializer="usetool")
recorder.register_serializer("usetool", middleware.cassettes.vcr)

Secrets in what vcrpy records are for vcrpy's own filters; of headers only a few are written.
"""

from __future__ import annotations

from pathlib import Path

from adapters.errors import GatewayError
from adapters.protocol import Json
from middleware import __version__
from middleware.cassettes.bridges.foreign import read_exchange
from middleware.cassettes.bridges.interactions import interactions
from middleware.cassettes.cassette import Cassette, CassetteTurn, RecordedAnswer
from middleware.cassettes.errors import UnreadableCassette
from middleware.cassettes.file import cassette_text, parse_cassette
from middleware.cli.importers.recordings import turn_of

_BESIDE = Path("a cassette of vcrpy's")
"""vcrpy gives a serializer the text alone: images in files beside it are missing, and named."""


def deserialize(text: str) -> Json:
    return {"version": 1, "interactions": interactions(parse_cassette(text.encode(), _BESIDE))}


def serialize(cassette_dict: Json) -> str:
    found = enumerate(cassette_dict["interactions"], 1)
    turns = tuple(_turn(number, interaction) for number, interaction in found)
    made = cassette_text(Cassette(turns, by=__version__))
    if made.sides:
        raise UnreadableCassette(str(_BESIDE), "it holds images; record it with `usetool record`")
    return made.text.decode()


def _turn(number: int, interaction: object) -> CassetteTurn:
    """What is no call of a model that we can read keeps its exchange; nobody can ask it."""
    exchange = read_exchange(interaction)
    try:
        turn = turn_of(number, exchange)
    except (ValueError, GatewayError):
        turn = CassetteTurn(number, {}, RecordedAnswer(exchange.status))
    return CassetteTurn(number, turn.body, turn.answer, exchanges=(exchange,), ended=turn.ended)
