"""Asks what was recorded again, as its clients did, and keeps what comes of it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import orjson

from adapters.errors import GatewayError
from adapters.protocol import Json, RequestContext
from adapters.shared.embeddings import EmbeddingRequest
from adapters.wire.http import Transport
from middleware import __version__
from middleware.building import Shared, build
from middleware.cassettes.asks import error_object, parse_own
from middleware.cassettes.cassette import Cassette, CassetteTurn
from middleware.cassettes.errors import CassetteRefused
from middleware.cassettes.file import cassette_text
from middleware.cassettes.names import CassetteName
from middleware.cassettes.record.adapter import (
    RawTurn,
    RecordingAdapter,
    recorded_vectors,
)
from middleware.cassettes.record.finish import in_clear, told_clear
from middleware.cassettes.record.offers import joined_routes
from middleware.cassettes.record.recorder import Recorder, head_of
from middleware.cassettes.record.turns import turn_of
from middleware.cassettes.secrets import blotted
from middleware.cassettes.selection import Selection
from middleware.cassettes.setup import studio_of
from middleware.cassettes.visitor import Visitor
from middleware.cli.command import complain
from middleware.config import Config
from middleware.machine.memory import MemoryBoard
from middleware.routing import Routes
from middleware.state.memory import MemoryState
from middleware.tools.shelf import open_shelf


async def ask_again(config: Config, cassette: Cassette) -> Cassette:
    """The same asks with what is sent and answered now; refused where a second search finds a
    secret in it.
    """
    transport = Transport()
    shared = Shared(MemoryBoard(), MemoryState(), open_shelf(config, None, MemoryState(), complain))
    recorder = studio_of(config, complain).recorder
    asking = _Asking(cassette, build(config, transport, shared=shared), recorder)
    asking.recorder.facts = transport.facts
    try:
        if shared.tools is not None:
            await shared.tools.begin()
        turns = [await asking.ask(turn) for turn in cassette.turns]
    finally:
        if shared.tools is not None:
            await shared.tools.end()
        await transport.close()
    heads = [head_of(recorder, model, tools) for model, tools in asking.offered.items()]
    routes = joined_routes({}, (one for head in heads for one in head.routes.items()))
    facts = tuple(fact for head in heads for fact in head.facts)
    now = replace(cassette, turns=tuple(turns), routes=routes, facts=facts, by=__version__)
    if found := in_clear(cassette_text(now), recorder.secrets):
        raise CassetteRefused(f"Nothing was written: it would have held {told_clear(found)}.")
    return now


@dataclass(slots=True)
class _Asking:
    """Asks as a client would, and keeps what comes of it."""

    cassette: Cassette
    routes: Routes
    recorder: Recorder
    offered: dict[str, Sequence[Json]] = field(default_factory=dict)
    """Models that were asked, with the server tools they had."""
    _kept: list[RawTurn] = field(default_factory=list)

    def put(self, turn: RawTurn) -> None:
        self._kept.append(turn)

    async def ask(self, turn: CassetteTurn) -> CassetteTurn:
        """The turn with a new answer, its secrets taken out."""
        try:
            await (self._chat(turn) if turn.operation == "chat" else self._vectors(turn))
        except GatewayError as error:  # that is an answer too
            if not self._kept:  # nobody was asked
                told = error_object(error)
                self.put(RawTurn(self._visitor(turn), (), status=error.status, error=told))
        raw = self._kept.pop()
        self.offered[turn.model] = raw.offered or self.offered.get(turn.model, ())
        made = blotted(turn_of(raw), self.recorder.blotter.turn())
        return replace(made, number=turn.number, body=turn.body, path=turn.path, own=turn.own)

    async def _chat(self, turn: CassetteTurn) -> None:
        visitor = self._visitor(turn)
        request = parse_own(self.cassette, turn, visitor.call)
        record = RecordingAdapter(self.routes.find(request.model), self, visitor)
        async with aclosing(record.stream(request)) as batches:
            async for _ in batches:
                pass

    async def _vectors(self, turn: CassetteTurn) -> None:
        name, leaf = self.routes.leaf(turn.model)

        async def live(call: RequestContext) -> Json:
            rest = {key: value for key, value in turn.body.items() if key not in ("model", "input")}
            vectors = await leaf.embed(EmbeddingRequest(name, turn.body["input"], call, rest))
            return {**vectors, "model": turn.model}

        await recorded_vectors(self, self._visitor(turn), live)

    def _visitor(self, turn: CassetteTurn) -> Visitor:
        identity = "req_" + os.urandom(12).hex()
        call = RequestContext(identity, streamed=turn.streamed, headers=turn.headers)
        body, now = orjson.dumps(turn.body), int(time.time())
        name, selection = CassetteName("", turn.session), Selection(lane=turn.lane)
        asked = turn.model, "refresh", body, "", call, turn.operation, now
        return Visitor(name, selection, *asked)
