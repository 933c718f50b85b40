"""What every request passes: admission, its line in the log, its record in `last`, and the one
broad `except`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from adapters.errors import Busy, GatewayError, Unauthorized
from adapters.protocol import ChatRequest, RequestContext
from middleware.accounts import Accounts, Bill
from middleware.accounts.crowd import Crowd
from middleware.cassettes.errors import ConnectionCut
from middleware.cassettes.selection import Selection
from middleware.cassettes.visitor import Visitor
from middleware.doors import DOORS, FALLBACK, Doors
from middleware.doors.chat_body import chat_body, says_more
from middleware.routing import Routes
from middleware.server.answering import Answer, error_headers, said_of
from middleware.server.kept_answers import KeptAnswers
from middleware.server.last import PATH as LAST
from middleware.server.last import Elsewhere, Records
from middleware.server.log import Log
from middleware.server.runtime import Runtime
from middleware.server.terminal import one_line, visible
from middleware.server.transport.intake import Caller, header, read_body
from middleware.server.transport.responses import CONNECTION, raw
from middleware.server.visits import Observer, Visit
from middleware.state.store import Waiting
from middleware.telemetry.bodies import Bodies

_LONGEST_PATH = 100
_DRAWN, _AT_ONCE = 8, 256
"""Bytes of an id that are random, and for how many they are drawn."""
_name_of = itemgetter(0)


@dataclass(slots=True)
class AdmittedRequest:
    """A request that may be answered, with its whole body."""

    runtime: Runtime
    """The config it began with."""
    body: bytes
    """Empty once it is read: an answer may take long."""
    call: RequestContext
    answer: Answer
    caller: Caller
    bill: Bill
    selection: Selection | None = None
    """What it says of cassettes; None: nothing, and it is to have none."""
    mode: str = ""
    """In which cassettes serve it, unless its model has one of its own; empty: they do not."""

    def routes(self, model: str) -> Routes:
        """Where its client's models are found; raise `UnknownModel` if this is none of them."""
        runtime = self.runtime
        if not runtime.limited:
            return runtime.routes
        routes = runtime.routes_of(self.caller.client)
        if not routes.opens(model):
            raise routes.unknown(model)
        return routes

    def mode_of(self, model: str) -> str:
        """The mode, now that its model is known."""
        studio = self.runtime.studio
        if studio is None or not studio.settings.models:
            return self.mode
        return self.runtime.mode(self.selection, model)

    def reserve(self, mode: str, answer: int | None) -> Waiting:
        """Take what it is likely to use of its client's limits; `answer` is its own limit."""
        bill = self.bill
        if mode == "replay":
            bill.forgive()
            return None
        if not bill.visit.counted:
            return self._enter_late(answer)
        allowance = bill.allowance
        return None if allowance is None else allowance.reserve(bill.size, answer)

    async def _enter_late(self, answer: int | None) -> None:
        """It had seemed that a recording would answer."""
        bill, allowance = self.bill, self.bill.allowance
        if (waiting := bill.enter()) is not None:
            await waiting
        if allowance is not None and (waiting := allowance.reserve(bill.size, answer)) is not None:
            await waiting

    def answers(self, model: str = "") -> KeptAnswers:
        """Those of its client that are kept."""
        return KeptAnswers.of(self.runtime, self.caller, self.selection, model)

    def visitor(self, model: str, mode: str, asked: ChatRequest | None = None) -> Visitor:
        """The request, as cassettes need to know it; `asked` is what was read of its body."""
        selection, runtime = self.selection, self.runtime
        assert selection is not None
        assert runtime.studio is not None
        name, created = selection.name or runtime.studio.usual, self.answer.created
        # Where none is asked, clients send a word that is no secret.
        key = self.caller.key if runtime.asks_keys or runtime.passes_keys else ""
        if self.answer.door.name == FALLBACK.name:
            asked = None  # its body is OpenAI's
        body = self.body if asked is None else chat_body(asked)
        visitor = Visitor(name, selection, model, mode, body, key, self.call, "chat", created)
        if asked is None or not says_more(asked):
            return visitor
        return visitor._replace(path=self.answer.visit.path, own=self.body)


Handler = Callable[[AdmittedRequest], Awaitable[None]]


@dataclass(slots=True)
class Edge:
    runtime: Runtime
    """Exchanged when the config changes; a request keeps the one it began with."""
    log: Log
    records: Records
    accounts: Accounts = field(default_factory=Accounts)
    crowd: Crowd = field(default_factory=Crowd)
    doors: Doors = DOORS
    observers: tuple[Observer, ...] = ()
    log_bodies: bool = False
    open_requests: int = 0
    elsewhere: Elsewhere | None = None
    """What the other workers keep; None: there are none."""
    _drawn: list[str] = field(default_factory=list, init=False, repr=False)
    """Random words for ids, as asking the system for each takes longer than the rest of an id."""

    async def handle(self, scope: Scope, receive: Receive, send: Send, handler: Handler) -> None:
        """Answer a request that an upstream works for."""
        runtime, connection = self.runtime, scope.get(CONNECTION)
        loop = asyncio.get_running_loop() if connection is None else connection.loop
        if not self._drawn:
            self._draw()
        visit = Visit(request_id(self._drawn.pop()), loop.time(), path=scope["path"])
        if runtime.config.telemetry.otlp is not None:
            visit.traceparent = header(scope, b"traceparent").decode("latin-1")
        bodies = None
        if self.log_bodies:
            bodies = Bodies()
            receive, send = bodies.heard(receive), bodies.told(send)
        door = self.doors.of(visit.path)
        visit.door = door.name
        answer = Answer(visit, send, door, runtime.config.server.heartbeat, loop)
        answer.connection = connection
        self.open_requests += 1
        try:
            await handler(await self._admit(scope, receive, answer))
        except GatewayError as error:
            await answer.fail(error)
        except ConnectionCut:
            answer.cut()
        except asyncio.CancelledError:
            if not visit.gone:  # the server is stopping
                await answer.fail(Busy("The gateway is shutting down. Send the request again."))
        # It is logged whole and is a 500 in the door's shape. Let through, it would be uvicorn's
        # plain text, or a stream that just stops.
        except Exception as error:  # the one place for what nobody foresaw in a request
            await answer.fail(_logged(error, visit.id))
        finally:
            answer.stop()
            self.open_requests -= 1
            try:
                self._close(answer, loop.time(), bodies)
            finally:  # whatever could not be told, nobody is kept out for it
                waiting = _settled(answer.bill)
                if waiting is not None:
                    await waiting

    def _draw(self) -> None:
        drawn = os.urandom(_DRAWN * _AT_ONCE)
        self._drawn += [drawn[at : at + _DRAWN].hex() for at in range(0, len(drawn), _DRAWN)]

    async def _admit(self, scope: Scope, receive: Receive, answer: Answer) -> AdmittedRequest:
        runtime, visit = self.runtime, answer.visit
        server = runtime.config.server
        caller = runtime.keys.caller(scope)
        client = caller.client
        visit.client, owner = client.name, client.owner
        visit.owner = owner
        # Where no key is asked, whoever likes could be many.
        self.crowd.enter(visit.id, owner if runtime.asks_keys else "", server.max_concurrent)
        selection = runtime.selection(scope, caller)
        bill = answer.bill = self.accounts.bill(visit, client, runtime.prices)
        mode = runtime.mode(selection)
        if mode != "replay" and (waiting := bill.enter()) is not None:
            await waiting
        record = self.records.begin(visit, owner)
        body = await read_body(scope, receive, server.max_body)
        bill.size, capture = len(body), None
        if record is not None and not record.dropped:
            record.body, capture = body, record.calls
        reads = answer.door.endpoint.reads
        call = RequestContext(
            id=visit.id,
            owner=owner,
            key=caller.key if runtime.passes_keys else "",
            size=bill.size,
            capture=capture,
            client=client.name,
            journey=visit.journey,
            session="" if runtime.shared.tools is None else _session(scope),
            secret=runtime.secret(selection, mode),
            headers=heard(scope, reads) if reads else {},
            now=answer.loop.time,
        )
        return AdmittedRequest(runtime, body, call, answer, caller, bill, selection, mode)

    def refused(
        self, scope: Scope, error: GatewayError, headers: Mapping[str, str] | None = None
    ) -> Response:
        """The answer to a request that nothing is done for."""
        now = asyncio.get_running_loop().time()
        path = one_line(scope["path"][:_LONGEST_PATH])
        visit = Visit(request_id(), now, path=path, method=scope["method"][:20])
        door = self.doors.of(path)
        visit.door, visit.status, visit.error = door.name, door.error_status(error), error
        with suppress(Unauthorized):
            visit.client = self.runtime.keys.caller(scope).client.name
        if path.startswith(LAST):
            self.log.end(visit, now)  # looking at the records leaves none
        else:
            self._end(visit, now)
        body = door.error_body(error, visit.id)
        response = Response(body, visit.status, None, "application/json")
        named = {"x-request-id": visit.id, **error_headers(error), **door.headers(visit.id, error)}
        named |= headers or {}
        response.raw_headers += raw(said_of(named))
        return response

    def _close(self, answer: Answer, now: float, bodies: Bodies | None) -> None:
        visit = answer.visit
        self.crowd.leave(visit.id)
        if answer.bill is not None:
            answer.bill.close()
        self._end(visit, now, bodies)
        for observer in self.observers:
            observer.ended(visit, now)

    def _end(self, visit: Visit, now: float, bodies: Bodies | None = None) -> None:
        self.records.end(visit, now)
        if bodies is None:
            self.log.end(visit, now)
        else:
            self.log.write(visit.line(now) | bodies.line(self.runtime.scrubber))


def _settled(bill: Bill | None) -> Waiting:
    return None if bill is None or bill.allowance is None else bill.allowance.settle()


def _session(scope: Scope) -> str:
    """What the client calls its session; only tools have any."""
    return header(scope, b"x-usetool-session").decode("utf-8", "replace")


def heard(scope: Scope, names: tuple[str, ...]) -> Mapping[str, str]:
    """Headers a door reads; of one that comes twice, all values."""
    found: dict[str, list[str]] = {}
    if _as_sent(names).isdisjoint(map(_name_of, scope["headers"])):
        return {}
    for sent, value in scope["headers"]:
        if (name := sent.decode("latin-1")) in names:
            found.setdefault(name, []).append(value.decode("latin-1"))
    return {name: ",".join(values) for name, values in found.items()}


@lru_cache(maxsize=8)
def _as_sent(names: tuple[str, ...]) -> frozenset[bytes]:
    return frozenset(name.encode("latin-1") for name in names)


def request_id(drawn: str = "") -> str:
    """In the order of time, as the ledger's index grows at its end then.

    It is not to be guessed: where no key is asked, who has one has the answer that is kept by it.
    """
    return f"req_{time.time_ns() // 1_000_000:012x}{drawn or os.urandom(_DRAWN).hex()}"


def our_mistake() -> GatewayError:
    return GatewayError("The gateway made a mistake of its own; its log has the details.")


def _logged(error: Exception, request_id: str) -> GatewayError:
    trace = "".join(traceback.format_exception(error))
    sys.stderr.write(f"{request_id}: unforeseen error\n{visible(trace)}")
    return our_mistake()
