"""A cassette of a request that was not recorded, from what the gateway keeps of the last ones."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from adapters.errors import BadRequest
from adapters.protocol import RequestContext
from adapters.wire.capture import MOST
from middleware.cassettes.asks import body_of, error_object
from middleware.cassettes.cassette import Cassette, CassetteTurn
from middleware.cassettes.names import CassetteName
from middleware.cassettes.record.adapter import RawTurn
from middleware.cassettes.record.recorder import Recorder, head_of
from middleware.cassettes.record.turns import turn_of
from middleware.cassettes.secrets import Blotter, blotted
from middleware.cassettes.selection import Selection
from middleware.cassettes.verify import verified
from middleware.cassettes.visitor import Operation, Visitor
from middleware.doors import DOORS, FALLBACK
from middleware.doors.chat_body import chat_body, says_more
from middleware.server.last import Record


async def cassette_of_kept(record: Record, recorder: Recorder) -> Cassette:
    """One turn; its answer is what the gateway makes of what was heard."""
    if not record.calls:
        raise _refused("it asked no upstream, so there is nothing to play again")
    for call in record.calls:
        if sum(map(len, call.pieces)) < call.size:
            raise _refused(
                f"of the {call.size} bytes that upstream '{call.upstream}' answered only the "
                f"first {MOST} are kept. Record it: usetool record NAME -- COMMAND"
            )
    # What is read of bodies is remembered for the loop's thread; to search them takes long.
    turn = await asyncio.to_thread(_blotted, _raw(record), recorder.blotter)
    numbered = replace(turn, number=1, kept=not turn.is_whole)
    cassette = replace(
        head_of(recorder, record.visit.model, record.calls.offered), turns=(numbered,)
    )
    return (await verified(cassette, "the kept request")).cassette


def _blotted(raw: RawTurn, blotter: Blotter) -> CassetteTurn:
    return blotted(turn_of(raw), blotter.turn())


def _raw(record: Record) -> RawTurn:
    visit = record.visit
    call = RequestContext(visit.id, streamed=visit.streamed)
    operation: Operation = visit.operation
    if operation == "embeddings" and "input" not in body_of(record.body):
        raise _refused("it has no 'input', as POST /v1/embeddings takes it")
    body, door = record.body, DOORS.at.get(visit.path, FALLBACK)
    own = ("", b"")
    if door is not FALLBACK:
        request = door.parse(body, repair=True, strict=False, call=call).request
        own = (visit.path, body) if says_more(request) else own
        body = chat_body(request)
    asked = visit.model, "record", body, "", call, operation, visit.created
    visitor = Visitor(CassetteName(""), Selection(), *asked, *own)
    error = None if visit.error is None else error_object(visit.error)
    turn = RawTurn(visitor, record.calls, None, visit.status, error, visit.gone)
    return turn._replace(tools=record.calls.tools)


def _refused(why: str) -> BadRequest:
    return BadRequest(f"No cassette can be made of this request: {why}.", code="not_kept")
