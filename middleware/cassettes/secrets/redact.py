"""Turns without secrets: as they are recorded, and as people want them afterwards."""

from __future__ import annotations

from dataclasses import replace

from middleware.cassettes.cassette import Cassette, CassetteTurn, RecordedExchange
from middleware.cassettes.secrets.blotter import Blotter, Redaction, TurnBlotter


def redacted(cassette: Cassette, redaction: Redaction) -> Cassette:
    """Take what is named out of asks, wire and answers alike; the same cassette if it is in none.

    Of paths it is the texts that any ask has there. Equal values get equal marks in all turns.
    """
    blotter = Blotter({}, redaction, shapes=False).turn()
    for turn in cassette.turns:
        blotter.ask(turn.body)
    new = [blotted(turn, blotter) for turn in cassette.turns]
    turns = tuple(
        old if it == old else replace(it, redacted=True)
        for old, it in zip(cassette.turns, new, strict=True)
    )
    facts = tuple(blotter.json(list(cassette.facts)))
    done = replace(cassette, turns=turns, facts=facts, routes=blotter.json(dict(cassette.routes)))
    return cassette if done == cassette else done


def blotted(turn: CassetteTurn, blotter: TurnBlotter) -> CassetteTurn:
    """A turn without the secrets that are known or look like some."""
    said = turn.answer
    return replace(
        turn,
        body=blotter.ask(turn.body),
        own=blotter.json(turn.own),
        answer=replace(
            said,
            message=blotter.json(said.message),
            logprobs=blotter.json(said.logprobs),
            system_fingerprint=blotter.json(said.system_fingerprint),
            service_tier=blotter.json(said.service_tier),
            error=blotter.json(said.error),
            body=blotter.json(said.body),
        ),
        headers=blotter.json(dict(turn.headers)),
        tools=tuple(
            one._replace(
                arguments=blotter.text(one.arguments),
                content=blotter.json(one.content),
                sources=blotter.json([*one.sources]) or (),
                pieces=blotter.json([*one.pieces]) or (),
            )
            for one in turn.tools
        ),
        exchanges=tuple(_exchange(one, blotter) for one in turn.exchanges),
    )


def _exchange(exchange: RecordedExchange, blotter: TurnBlotter) -> RecordedExchange:
    body, sizes = blotter.heard(exchange.body, [size for _, size in exchange.pieces])
    failure = exchange.failure
    return replace(
        exchange,
        path=blotter.text(exchange.path),
        sent=blotter.sent(exchange.sent),
        headers=blotter.json(dict(exchange.headers)),
        body=body,
        pieces=tuple((ms, size) for (ms, _), size in zip(exchange.pieces, sizes, strict=True)),
        failure=failure and replace(failure, message=blotter.text(failure.message)),
    )
