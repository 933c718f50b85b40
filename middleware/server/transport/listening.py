"""The HTTP side of the server: what uvicorn leaves open.

It answers what is no HTTP in OpenAI's shape, stays with HTTP/1.1 where a client offers another
protocol, and ends connections on which nothing moves: a request that does not arrive (uvicorn
waits for the end of its head and of its body for ever), an answer that is not read. One alarm a
connection sees to all of that: a timer a request would cost every request for the few that drip.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from socket import SO_ERROR, SOL_SOCKET
from typing import Any, ClassVar, cast

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from adapters.errors import BadRequest
from adapters.wire.http import Timeouts
from middleware.doors import DOORS, FALLBACK
from middleware.doors.door import PING
from middleware.doors.endpoint import NDJSON
from middleware.server.transport.cycle import Cycle
from middleware.server.transport.intake import by_names

Headers = Sequence[tuple[bytes, bytes]]
_MOST_HEAD, _MOST_UNWANTED = 256 << 10, 64 << 20
"""Bytes of a request's head, or behind it without any of a body, such as trailers; of a request
that has its answer before it is all here.
"""
_MOST_WAITING = 100
"""Requests of one connection that wait behind another: each takes a hundred times its bytes."""
_LEAST = 1024
"""Bytes a client must take in `idle` seconds: one that takes a byte a minute would never end."""
_PROBES, _FIRST_PAUSE = 4, 0.03
"""How often it is tried whether a client still listens: Go's takes five interim answers."""
_TICK = 0.01
"""How exact a loop's timers are."""
_LINES = tuple(path for path, door in DOORS.at.items() if door.endpoint.stream_type == NDJSON)
"""How the paths of doors end that stream lines."""
_HEAD = (
    b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    b"connection: close\r\n\r\n"
)


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on how long a request may arrive, and an answer may wait."""

    seconds: ClassVar[float] = 30.0
    """From a request's first byte to its last; also from the connection to the first byte."""
    _began: float | None = None
    """When a request began to arrive; None while there is none."""
    _asked = False
    """Anything was ever sent."""
    _in_body = False
    _head: Headers = ()
    """Without the trailers, which come behind the body: no header that counts may hide there."""
    _size = 0
    """Bytes of a request that came in parts."""
    _barren = _brought = 0
    """Those of them that brought nothing of a body; bytes of bodies in what is being read."""
    _wrong = ""
    """What is wrong with a head that can be read."""
    _refusal: bytes | None = None
    """To be said once all answers that are owed have left; nothing more is read."""
    _half_closed = False
    """The client ended its sending: it has no further request."""
    cycle: Cycle
    """The request that was read last."""
    _active: Cycle | None = None
    """The request that is being answered, or was last."""
    _idle_since: float | None = None
    """When the last answer was complete; None while anything is under way."""
    _watch: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None
    _unread = 0
    """Bytes of answers that waited for the client when there was last progress, at this time:"""
    _unread_at = 0.0

    @property
    def idle(self) -> float:
        """How long an answer may wait for a client that takes nothing of it."""
        return Timeouts().idle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._sent: asyncio.Future[None] = self.loop.create_future()
        self._sent.set_result(None)
        self._began = self.loop.time()
        self._watch = self.loop.call_later(self.seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._watch, self._stuck):
            if timer is not None:
                timer.cancel()
        self._leave()
        if self._active is not None:
            self._active.let_go(self.tasks)
        super().connection_lost(exc)

    def eof_received(self) -> Any:
        """Return True to go on sending: the client closed, or only ended its sending and listens.

        A closed one answers what we send with a reset, and its upstream's answer is cancelled then.
        """
        active = self._active
        waits = active is not None and active.scope["http_version"] == "1.1" and self._owes_answer()
        if waits:
            self._half_closed = True
            self._probe(_PROBES)
        return waits

    def _probe(self, left: int, pause: float = _FIRST_PAUSE) -> None:
        active = self._active
        if active is None or active.response_complete or self.transport.is_closing():
            return
        if self.transport.get_extra_info("socket").getsockopt(SOL_SOCKET, SO_ERROR):
            self.transport.abort()
            return
        if left:
            self._say_something(active)
        self.loop.call_later(pause, self._probe, max(0, left - 1), min(pause * 4, 1.0))

    def _say_something(self, active: Cycle) -> None:
        """What every client passes over: an interim answer, a comment in a stream, or the space
        in front of a line of JSON.
        """
        active.flush()
        if not active.head_has_left:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        elif active.chunked_encoding:
            filler = b" " if active.scope["path"].endswith(_LINES) else PING
            self.transport.write(b"%x\r\n%b\r\n" % (len(filler), filler))

    def _leave(self) -> None:
        self.pipeline.clear()
        if self._active is not None:
            self._active.leave()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if self._active is not None:
            self._active.let_go(self.tasks)
        self._active = cast(Cycle, cycle)
        self._active.start(app, self.loop, self.tasks)

    def watch(self, when_left: Callable[[], None]) -> None:
        """Call this once the client has left before the end of the answer that is being made."""
        if self._active is not None:
            self._active.watch(when_left)

    def gather(self) -> None:
        """Write what is said in one turn of the loop together, of the answer that is made."""
        if self._active is not None:
            self._active.gather(self.loop)

    def cut(self) -> None:
        """End the connection without the rest of an answer, or without any."""
        self._leave()
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        while data and self._refusal is None:
            self._brought = 0
            size, data = len(data), self._feed(data)
            if self._began is not None and self._refusal is None:
                self._count(size)

    def _count(self, size: int) -> None:
        """Bound what uvicorn would keep for ever: a head, trailers, what comes behind an answer."""
        self._size += size
        self._barren += size - self._brought  # a body may be another request's
        if self._barren > _MOST_HEAD:
            part = "trailer" if self._in_body else "head"
            what = f"The request's {part} is larger than {_MOST_HEAD} bytes."
            self._refuse(431, b"Request Header Fields Too Large", what)
        elif self._in_body and self.cycle.response_complete and self._size > _MOST_UNWANTED:
            self.transport.close()

    def _feed(self, data: bytes) -> bytes:
        """Let the parser read; returns what it has to read again."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            said = self._wrong or "Invalid HTTP request received. It is not valid HTTP/1.1."
            self._refuse(400, b"Bad Request", said)
        except httptools.HttpParserUpgrade as offer:
            # The parser stops behind such a head, and the body is lost. Java's HttpClient offers
            # HTTP/2 with every request: https://www.rfc-editor.org/rfc/rfc9110#section-7.8
            if self._should_upgrade():
                return self._head_without_offer() + data[offer.args[0] :]
        return b""

    def _should_upgrade(self) -> bool:
        """Until the offer is taken out of its head, a request counts as not there."""
        return any(name == b"upgrade" for name, _ in self._head)

    def _head_without_offer(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        lines += [b"%b: %b" % (name, value) for name, value in self._head if name != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
        return b"\r\n".join((*lines, b"\r\n"))

    def on_message_begin(self) -> None:
        self._began, self._asked, self._in_body = self.loop.time(), True, False
        self._size = self._barren = 0
        self._idle_since = None  # and not before: empty lines between requests are none
        self.url, self.headers, self.expect_100_continue = b"", [], False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        head = self._head = self.headers
        named = by_names(head)
        usual = len(named) == len(head) and b"host" in named and not self.pipeline
        self._wrong = "" if usual else self._wrong_head()
        if self._wrong:
            raise ValueError(self._wrong)  # which the parser reports to `_feed`
        if b"expect" in named:
            asked = [value.lower() for name, value in head if name == b"expect"]
            self.expect_100_continue = b"100-continue" in asked
        if not (self.parser.should_upgrade() and self._should_upgrade()):
            self._queue_cycle(named)
        self._in_body = True
        self.headers = []

    def _queue_cycle(self, headers: Mapping[bytes, bytes]) -> None:
        """Answer the request whose head is here, or have it wait for the answer before."""
        if self.transport.is_closing():
            return
        before: Cycle | None = self.cycle
        cycle = self.cycle = Cycle(self, headers, self._sent)
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def _wrong_head(self) -> str:
        if len(self.pipeline) >= _MOST_WAITING:
            return f"Over {_MOST_WAITING} requests wait for their answers on this connection."
        # https://www.rfc-editor.org/rfc/rfc9112#section-3.2
        hosts = sum(name == b"host" for name, _ in self._head)
        if hosts == 1 or (not hosts and self.parser.get_http_version() == "1.0"):
            return ""
        found = f"The request has {hosts or 'no'} Host headers, and must have one."
        return f"{found} It is not valid HTTP/1.1."

    def on_body(self, body: bytes) -> None:
        cycle, self._barren = self.cycle, 0
        self._brought += len(body)
        if (self.parser.should_upgrade() and self._should_upgrade()) or cycle.response_complete:
            return
        cycle.take(body)
        if cycle.unread > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        self._began, self._in_body = None, False
        cycle, active = self.cycle, self._active
        if not (self.parser.should_upgrade() and self._should_upgrade()):
            cycle.end_body()
        if active is not None and active.response_complete and not active.keep_alive:
            self.transport.close()  # which waited for the body

    def _look(self) -> None:
        self._look_at_unread()
        now = self.loop.time()
        began, idle_since = self._began, self._idle_since
        if began is None or self._owes_answer():
            began = now
        if idle_since is not None and now - idle_since >= self.timeout_keep_alive:
            self.transport.close()
        elif now - began < self.seconds:
            closes = math.inf if idle_since is None else idle_since + self.timeout_keep_alive
            self._watch = self.loop.call_at(min(began + self.seconds, closes), self._look)
        elif not self._asked:
            self.transport.close()
        else:
            late = f"The request did not arrive within {self.seconds:g} seconds."
            self._refuse(408, b"Request Timeout", late)

    def _owes_answer(self) -> bool:
        """To a whole request, or the rest of one that has begun."""
        active = self._active
        if active is None or active.response_complete:
            return False
        return active.response_started or active is not self.cycle or not self._in_body

    def _refuse(self, status: int, reason: bytes, message: str) -> None:
        """Read nothing more; say why behind all answers that are owed, and close."""
        body = FALLBACK.error_body(BadRequest(message, status=status, code="invalid_http"))
        self._refusal = _HEAD % (status, reason, len(body)) + body
        if self._in_body and self.cycle is not self._active:
            self.pipeline.popleft()  # the request this is about
        elif self._in_body and self.cycle.response_started:
            self._refusal = b""  # it has its answer, or a part of it
            self._hang_up()
        if not self._owes_answer():
            self._hang_up()

    def _hang_up(self) -> None:
        if self._refusal and not self.transport.is_closing():
            self.transport.write(self._refusal)
        self.transport.close()

    def on_response_complete(self) -> None:
        if (self._refusal is not None or self._half_closed) and not self.pipeline:
            self._hang_up()
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        else:
            self._idle_since = self.loop.time()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._still_stuck()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()

    def _still_stuck(self) -> None:
        self._look_at_unread()
        self._stuck = self.loop.call_later(self.idle, self._still_stuck)

    def _look_at_unread(self) -> None:
        """End the connection of a client that takes nothing of its answer.

        While writing is paused, and behind an answer's end, nothing is added to what waits.
        """
        waiting, now = self.transport.get_write_buffer_size(), self.loop.time()
        if not waiting or waiting > self._unread or self._unread - waiting >= _LEAST:
            self._unread, self._unread_at = waiting, now
        elif now - self._unread_at >= self.idle - _TICK:
            self.transport.abort()
