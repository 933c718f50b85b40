"""One request's response: events in, one JSON body, a stream or an error out, by its door."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache

import orjson
from starlette.types import Send

from adapters.errors import GatewayError, Truncated
from adapters.outcomes import RouteSummary
from adapters.protocol import Adapter, ChatRequest, Event, Finish, Noted, Opened
from adapters.receipts import Receipt
from middleware.accounts import Bill
from middleware.doors.door import Door, ParsedRequest, Stamp, Stream
from middleware.doors.x_usetool import (
    cost_header,
    route_headers,
    route_object,
    usage_parts,
    warnings_header,
)
from middleware.server.transport.responses import (
    ClientConnection,
    EventStream,
    RawHeaders,
    raw,
    send_json,
)
from middleware.server.visits import Visit
from middleware.wrappers.base import Batches
from middleware.wrappers.calls import NotAsked

_GONE = 499
"""Status in the log of a request whose client left before it got one."""
_OVERLOADED, _RETRY_AFTER = "overloaded", "5"
_RATE_LIMIT = "x-ratelimit-"
_TOLD_OF = frozenset((Opened, Noted))
"""What is not for the client alone."""


class Answer:
    """One request's response, plain or streamed."""

    __slots__ = (
        *("visit", "_send", "_heartbeat", "door", "_headers", "_id", "created", "_now", "_began"),
        *("_in_headers", "_stream", "_task", "loop", "bill", "priced", "connection"),
    )

    def __init__(
        self,
        visit: Visit,
        send: Send,
        door: Door,
        heartbeat: float,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.visit = visit
        self._send = send
        self.door = door
        self._in_headers = 0
        """How many notes of the receipt the client got in the response headers."""
        self._heartbeat = heartbeat
        self._stream: EventStream | None = None
        self.loop = loop
        self._task: asyncio.Task[None] | None = None
        """To be cancelled when the client leaves."""
        self.connection: ClientConnection | None = None
        self._headers: RawHeaders = [(b"x-request-id", visit.id.encode())]
        if own := door.headers(visit.id):
            self._headers += raw(own)
        self._id = visit.id
        """What the ids in bodies are made of."""
        self.created = 0
        self._began = 0.0
        self._now: Callable[[], float] = time.time
        self.priced = True
        """What it costs is told."""
        self.bill: Bill | None = None
        """Of what was let in."""

    def begin(self, parsed: ParsedRequest) -> None:
        """Note for log and answer what the request is."""
        visit, request = self.visit, parsed.request
        visit.model = request.model[:200]
        visit.streamed = request.call.streamed
        visit.receipt = parsed.receipt
        self._began = time.time()
        self.created = visit.created = int(self._began)

    def replay(self, label: str, identity: str = "", created: int | None = None) -> None:
        """Answer as a recording does, or what will be one: under its own id and time, and without
        a price, as playing it has none.
        """
        self.priced = False
        self._id = identity or self._id
        if identity and self.visit.streamed and self.connection is not None:
            self.connection.gather()
        if created is not None:
            self.created, self._began, self._now = created, created, lambda: created
        if label:
            self.visit.replay = label
            self._headers.append((b"x-usetool-replay", label.encode()))

    def watch(self) -> None:
        """From now on cancel this task when the client closes its connection."""
        if self.connection is not None:
            self._task = asyncio.current_task(self.loop)
            self.connection.watch(self._leave)

    def _leave(self) -> None:
        if self._task is not None:
            self.visit.gone = True
            self.visit.status = self.visit.status or _GONE
            self._task.cancel()

    def cut(self) -> None:
        """End the connection as if the gateway had died."""
        self.visit.gone = True
        self._unwatch()
        if self.connection is not None:
            self.connection.cut()

    def _unwatch(self) -> None:
        """The answer is whole: who leaves now has left nothing."""
        self._task = None

    def stop(self) -> None:
        self._task = None
        if self._stream is not None:
            self._stream.stop()

    # What only hands on is no coroutine.
    def respond(self, adapter: Adapter, parsed: ParsedRequest) -> Awaitable[None]:
        if parsed.request.call.streamed:
            return self._respond_streamed(adapter, parsed)
        return self._respond_whole(adapter, parsed)

    def note_lost(self, adapter: Adapter, request: ChatRequest) -> None:
        """Where it failed before an `Opened` told what was lost, the plan does."""
        if self.visit.first_event is None:
            self.visit.receipt += _planned(adapter, request)

    async def _respond_whole(self, adapter: Adapter, parsed: ParsedRequest) -> None:
        events: list[Event] = []
        batches = adapter.stream(parsed.request)
        try:
            try:
                async for batch in batches:
                    events += batch
            finally:
                await batches.aclose()
            body = parsed.fold(self.stamp(), events)
        finally:
            opened = self._note_events(events)
        if self.priced and self.bill is not None:
            self.bill.close()
        headers, finish = self._told_headers(opened), self.visit.finish
        if finish is not None and finish.usage is not None and finish.usage.parts:
            told = orjson.dumps(usage_parts(finish.usage)).decode()
            headers += raw({"x-usetool-usage": told})
        await self._send_whole(body, headers)

    def stamp(self) -> Stamp:
        """What its ids and times are made of."""
        return Stamp(self._id, self.created, self._now, self._began)

    def _note_events(self, events: Sequence[Event]) -> Opened | None:
        if not events:
            return None
        first, last = events[0], events[-1]
        opened = first if type(first) is Opened else None
        if opened is not None:
            self._note_opened(opened)
        self._note_late(events)
        if type(last) is Finish:
            self.visit.finish = last
        return opened

    def _close_bill(self) -> Receipt:
        """Sum up what was used, now that all is known; return what that added to the receipt."""
        before = len(self.visit.receipt)
        if self.bill is not None:
            self.bill.close()
        return self.visit.receipt[before:]

    async def respond_json(self, body: bytes) -> None:
        """Answer with what no model said."""
        self._close_bill()
        await self._send_whole(body, [])

    def _send_whole(self, body: bytes, headers: RawHeaders) -> Awaitable[None]:
        visit = self.visit
        visit.status = 200
        self._unwatch()
        if visit.cost and self.priced:
            headers.append((b"x-usetool-cost", cost_header(visit.cost).encode()))
        return send_json(self._send, 200, body, self._headers + headers)

    async def _respond_streamed(self, adapter: Adapter, parsed: ParsedRequest) -> None:
        writer = parsed.stream(self.stamp())
        stream = self._stream = EventStream(
            self._send, self._headers, writer, self._heartbeat, self.loop
        )
        batches = adapter.stream(parsed.request)
        try:  # as `aclosing` does, which costs more than a layer of wrappers
            async for batch in batches:
                last = batch[-1]
                if len(batch) > 1 or type(last) in _TOLD_OF:  # nearly always it is one piece
                    headers = self._noted(stream, batch)
                    if headers is not None:
                        await stream.start(headers)
                    if type(batch) is Batches:
                        await stream.write_each(batch.apart, self.connection is not None)
                        continue
                if type(last) is Finish:
                    self.visit.finish = last
                    self._unwatch()
                    self._tell_cost(writer)
                    await stream.last(writer.render(batch))
                else:
                    await stream.write(writer.render(batch))
        finally:
            await batches.aclose()
        if self.visit.finish is None:
            raise Truncated("The upstream's answer has no end.")

    def _noted(self, stream: EventStream, batch: Sequence[Event]) -> RawHeaders | None:
        """Note what it tells of the answer; the headers of one that begins with it."""
        first = batch[0]
        headers = self._opened(stream, first) if type(first) is Opened else None
        self._note_late(batch)
        return headers

    def _note_late(self, batch: Sequence[Event]) -> None:
        if Noted in map(type, batch):
            for event in batch:
                if type(event) is Noted:
                    self.visit.receipt += event.receipt

    def _tell_cost(self, writer: Stream) -> None:
        added = self._close_bill()
        if not self.priced:
            return
        writer.keep_for_last_frame(added)
        # Where nobody keeps accounts, a stream has no member that OpenAI's has not: what was asked
        # there and is made a recording of later is told again to the byte.
        if self.visit.cost and self.bill is not None and self.bill.watched:
            writer.tell("cost", self.visit.cost)

    def _opened(self, stream: EventStream, opened: Opened) -> RawHeaders | None:
        """The headers it begins with; None: a heartbeat began it, and it is too late for them."""
        self._note_opened(opened)
        self.visit.status = 200
        if not stream.started:
            self._in_headers = len(self.visit.receipt)
            return self._told_headers(opened)
        stream.writer.keep_for_last_frame(self.visit.receipt)
        for member, value in route_object(self.visit.journey.summary()).items():
            stream.writer.tell(member, value)
        return None

    def _note_opened(self, opened: Opened) -> None:
        self.visit.opened(opened, self.loop.time())
        if self.bill is not None and self.bill.watched:
            self.visit.receipt += self.bill.missing()

    def _told_headers(self, opened: Opened | None) -> RawHeaders:
        """Who answered, and what was changed."""
        visit = self.visit
        model = opened.upstream.model[:200] if opened is not None else ""
        headers = [*_route_headers(visit.journey.summary(), model)]
        if opened is not None:
            limits, own = self._limits(opened.upstream.headers)
            headers += [*raw(limits), *own] if limits else own
        if visit.receipt:
            headers += raw({"x-usetool-warnings": warnings_header(visit.receipt)})
        return headers

    def _limits(
        self, headers: Mapping[str, str]
    ) -> tuple[Mapping[str, str], Sequence[tuple[bytes, bytes]]]:
        """A client that has limits of its own is told of those, not of the upstream's."""
        allowance = None if self.bill is None else self.bill.allowance
        own = () if allowance is None else allowance.headers
        if own and _RATE_LIMIT in " ".join(headers):
            headers = {
                name: value for name, value in headers.items() if not name.startswith(_RATE_LIMIT)
            }
        named = self.door.endpoint.limits
        if named is None:
            return headers, own
        told = {name.decode(): value.decode() for name, value in own}
        return named({**headers, **told}, self._now()), ()

    async def fail(self, error: GatewayError) -> None:
        """Say what went wrong: as a status, or as the last frame of a stream that has begun."""
        self.visit.error = error
        self._unwatch()
        stream = self._stream
        if stream is not None and stream.started:
            self.visit.status = 200
            untold = self.visit.receipt[self._in_headers :]
            await stream.last(stream.writer.error_frame(error, self._id, untold))
            return
        if stream is not None:
            stream.stop()
        self.visit.status = self.door.error_status(error)
        body = self.door.error_body(error, self._id)
        limits, own = self._limits(error_headers(error))
        told = {**limits, **self.door.headers(self.visit.id, error)}
        headers = [*self._told_headers(None), *raw(said_of(told)), *own]
        names = {name for name, _ in headers}
        before = [header for header in self._headers if header[0] not in names]
        await send_json(self._send, self.visit.status, body, [*before, *headers])


# Nearly all requests for a model go the same way.
@lru_cache(maxsize=256)
def _route_headers(route: RouteSummary, upstream_model: str) -> Sequence[tuple[bytes, bytes]]:
    told = route_headers(route)
    return raw({**told, "x-upstream-model": upstream_model} if upstream_model else told)


def _planned(adapter: Adapter, request: ChatRequest) -> Receipt:
    try:
        notes = [note for call in adapter.plan(request) for note in call.receipt]
    except GatewayError:  # this is what failed: nothing was sent
        return ()
    return tuple(dict.fromkeys(notes))


def said_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Without those that are left empty."""
    return {name: value for name, value in headers.items() if value}


def error_headers(error: GatewayError) -> dict[str, str]:
    headers = {**error.headers}
    if error.retry_after or error.code == _OVERLOADED:
        headers["retry-after"] = error.retry_after or _RETRY_AFTER
    # OpenAI's SDKs ask again after these on their own; who was not asked may be, later.
    worth_it = error.again == "same" or isinstance(error, NotAsked)
    if not worth_it and (error.status == 409 or error.status >= 429):
        headers["x-should-retry"] = "false"
    return headers
