"""One cassette on its stage: what each of its turns comes to in this version.

The recorded ask, not the one that matched it, goes through the real route, wrappers and leaf. So
what a turn comes to does not depend on who asks, how often, or in which order; a difference in what
would be sent is a change of this gateway's own. Turns are rehearsed once, in the order they were
recorded, because leaves and recall remember what came before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import replace

from adapters.errors import GatewayError
from adapters.protocol import Journey, Planned, RequestContext
from adapters.shared.embeddings import EmbeddingRequest
from adapters.wire.http import Transport
from middleware.cassettes.asks import error_of, events_of, parse_own
from middleware.cassettes.cassette import Cassette, CassetteTurn, RecordedExchange
from middleware.cassettes.replay.performance import Batch, Performance
from middleware.cassettes.replay.wire import Drift, PlayedLink, PlayedTurn
from middleware.routing import Routes

_TURN_OVER = 4
"""Rehearsals after which other requests get their turn."""


class Stage:
    """`routes` are built over `PlayedLink`s."""

    def __init__(self, cassette: Cassette, routes: Routes) -> None:
        self._cassette = cassette
        self._routes = routes
        self._known: list[Performance] = []
        self._rehearsing = asyncio.Lock()

    async def performance(self, position: int) -> Performance:
        """What the turn at this position comes to."""
        async with self._rehearsing:
            while len(self._known) <= position:
                turn = self._cassette.turns[len(self._known)]
                self._known.append(await self.rehearse(turn, turn.exchanges))
                if len(self._known) % _TURN_OVER == 0:
                    await asyncio.sleep(0)
        return self._known[position]

    async def rehearse(
        self, turn: CassetteTurn, exchanges: Sequence[RecordedExchange]
    ) -> Performance:
        """What a turn comes to over these exchanges; without any, its stored answer."""
        if not exchanges:
            return stored(turn)
        played = PlayedTurn(exchanges, turn.tools)
        if not self._routes.line(turn.model):  # nothing here reads what was recorded
            played.end()
            return replace(stored(turn), drift=tuple(played.drift))
        journey = Journey()
        call = RequestContext(
            turn.identity,
            streamed=turn.streamed,
            key="replayed",
            capture=played,
            journey=journey,
            headers=turn.headers,
        )
        if turn.operation == "embeddings":
            found = await self._vectors(turn, call)
        else:
            found = await self._events(turn, call, played)
        if played.lacking:
            return replace(stored(turn), drift=(Drift("extra"), *played.drift))
        played.end()
        drift = tuple(played.drift)
        return replace(found, error_at=played.elapsed, drift=drift, journey=journey)

    async def _events(
        self, turn: CassetteTurn, call: RequestContext, played: PlayedTurn
    ) -> Performance:
        batches: list[Batch] = []
        error, planned = None, tuple[Planned, ...]()
        try:
            request = parse_own(self._cassette, turn, call)
            adapter = self._routes.find(request.model)
            async with aclosing(adapter.stream(request)) as events:
                async for batch in events:
                    heard = Batch(played.elapsed, batch)  # what came counts, also before an error
                    batches.append(heard)
        except GatewayError as found:
            error = _as_told(found, turn)
            with suppress(GatewayError):  # what was lost is told with it
                request = parse_own(self._cassette, turn, call)
                planned = self._routes.find(request.model).plan(request)
        return Performance(tuple(batches), error, planned=planned)

    async def _vectors(self, turn: CassetteTurn, call: RequestContext) -> Performance:
        body = turn.body
        params = {name: body[name] for name in body.keys() - {"model", "input"}}
        try:
            name, leaf = self._routes.leaf(turn.model)
            vectors = await leaf.embed(EmbeddingRequest(name, body["input"], call, params))
        except GatewayError as error:
            return Performance(error=error)
        return Performance(body={**vectors, "model": turn.model})


def _as_told(error: GatewayError, turn: CassetteTurn) -> GatewayError:
    """Of a refused key it was said where it came from, which is of the config back then."""
    told = turn.answer.error or {}
    if error.code == told.get("code") == "upstream_auth":
        error.message = str(told.get("message"))
    return error


def stored(turn: CassetteTurn) -> Performance:
    """The answer as it was folded when it was recorded, or written by hand."""
    answer = turn.answer
    batches = events_of(answer)
    return Performance(
        tuple(Batch(0.0, batch) for batch in batches), error_of(answer), body=answer.body
    )


async def answered_by(exchange: RecordedExchange) -> Performance:
    """What a fault comes to where no leaf would read it: for turns that have no exchanges."""
    link = PlayedLink("recorded", "", Transport(), compares=False)
    try:
        await link.ask("", b"", PlayedTurn((replace(exchange, upstream=link.name),)))
    except GatewayError as error:
        return Performance(error=error)
    return Performance()
