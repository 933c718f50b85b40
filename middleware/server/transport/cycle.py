"""One request of a connection and its answer, as ASGI has them. A head leaves with what follows it.

uvicorn's own cycle writes it apart, which is a system call more for each answer, copies a body
twice, and looks for a client's leaving only where a task waits for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from uvicorn._types import ASGI3Application, ASGIReceiveEvent, HTTPScope
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from middleware.server.transport.intake import HEADERS
from middleware.server.transport.responses import CONNECTION, PIECES
from middleware.server.transport.urls import read_url

_CONTROL = bytes({*range(32), 127} - {9})
"""What no value of a header may have; the end of a line is two of them."""
_STATUS_LINES: Mapping[int, bytes] = {code: line[:-2] for code, line in STATUS_LINE.items()}
_WITHOUT_BODY = frozenset({204, 304})


class _Nobody:
    """Whom uvicorn calls once a connection is lost; `leave` was called before."""

    def set(self) -> None: ...


class Cycle(RequestResponseCycle):
    """uvicorn's, with ways in and out of its own."""

    _loop: asyncio.AbstractEventLoop
    _task: asyncio.Task[None]
    unread = 0
    """Bytes of the request's body that nobody asked for yet."""
    more_body = True
    message_event: Any = _Nobody()
    _all_told = False
    """The end of the body was received by the app."""
    _bell: asyncio.Event | None = None
    """Of who waits for more: mostly all is here before it is asked for."""
    disconnected = response_started = response_complete = False
    chunked_encoding: bool | None = None
    expected_content_length = 0
    _head = b""
    """Until it leaves."""
    _gathered: bytearray | None = None
    """What leaves once the loop turns; None: everything leaves at once."""
    _when_left: Callable[[], None] | None = None

    # Without uvicorn's own, which is handed eleven things that the protocol has.
    def __init__(
        self,
        protocol: HttpToolsProtocol,
        headers: Mapping[bytes, bytes],
        sent: asyncio.Future[None],
    ) -> None:
        version = protocol.parser.get_http_version()
        self.scope = _scope_of(protocol, headers, version)
        self.transport, self.flow = protocol.transport, protocol.flow
        self.logger = protocol.logger
        self.default_headers = protocol.server_state.default_headers
        self.waiting_for_100_continue = protocol.expect_100_continue
        self.keep_alive = version != "1.0" and protocol.parser.should_keep_alive()
        self.on_response = protocol.on_response_complete
        self._pieces: list[bytes] = []
        """Of the request's body, until they are asked for."""
        self._sent = sent
        """Is over, as all is whose sending need not be waited for."""

    def start(
        self, app: ASGI3Application, loop: asyncio.AbstractEventLoop, tasks: set[asyncio.Task[None]]
    ) -> None:
        """Have the app answer: `tasks` are those that a server waits for before it ends."""
        self._task = loop.create_task(self.run_asgi(app))
        tasks.add(self._task)

    # Not by a callback of each task, which takes a turn of the loop.
    def let_go(self, tasks: set[asyncio.Task[None]]) -> None:
        """Another request follows, or none: this one's task is not waited for once it is done."""
        if self._task.done():
            tasks.discard(self._task)
        else:
            self._task.add_done_callback(tasks.discard)

    @property
    def head_has_left(self) -> bool:
        return self.response_started and not self._head

    def gather(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on write what is sent in one turn of the loop together, its chunks as they are.

        A write is a system call that wakes who reads.
        """
        self._loop, self._gathered = loop, bytearray()

    def flush(self) -> None:
        """Write what was gathered, while there is a connection."""
        if self._gathered and not self.transport.is_closing():
            said, self._gathered = self._gathered, bytearray()
            self.transport.write(said)

    def watch(self, when_left: Callable[[], None]) -> None:
        """Call this as soon as the client has left before the end of its answer."""
        self._when_left = when_left
        if self.flow.read_paused:
            self.flow.resume_reading()  # of what is not read no end is seen
        if self.disconnected:
            when_left()

    def leave(self) -> None:
        """The client has left."""
        if self.response_complete:
            return
        self.flush()
        self.disconnected = True
        if self._bell is not None:
            self._bell.set()
        when_left, self._when_left = self._when_left, None
        if when_left is not None:
            when_left()

    def take(self, piece: bytes) -> None:
        """Of the request's body."""
        self._pieces.append(piece)
        self.unread += len(piece)
        if self._bell is not None:
            self._bell.set()

    def end_body(self) -> None:
        """All of it is here."""
        self.more_body = False
        if self._bell is not None:
            self._bell.set()

    async def receive(self) -> ASGIReceiveEvent:
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        if not (self.disconnected or self.response_complete):
            if self.flow.read_paused:
                self.flow.resume_reading()
            if not self._pieces and (self.more_body or self._all_told):
                await self._more()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body = b"".join(self._pieces)
        self._pieces.clear()
        self.unread, self._all_told = 0, not self.more_body
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def _more(self) -> None:
        """Wait for more of the body, or for its end, or that of all."""
        self._bell = self._bell or asyncio.Event()
        self._bell.clear()
        await self._bell.wait()

    # No coroutine, as each piece of a stream would pay for one: only who must wait does. `Any`: an
    # awaitable, where uvicorn promises a coroutine.
    def send(self, message: Any) -> Any:
        if self.disconnected:
            return self._sent
        if self.flow.write_paused:
            return self._send_later(message)
        kind = message["type"]
        if kind == "http.response.body" and self.response_started and not self.response_complete:
            self._continue(message.get("body", b""), message.get("more_body", False))
        elif kind == "http.response.start" and not self.response_started:
            self._begin(message["status"], message.get("headers", ()))
        elif kind == PIECES and self.response_started and not self.response_complete:
            self._continue_apart(message["pieces"])
        else:
            raise RuntimeError(f"The app sent '{kind}' where no response may have it.")
        return self._sent

    async def _send_later(self, message: Any) -> None:
        await self.flow.drain()
        await self.send(message)

    def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        said = [*self.default_headers, *headers]
        names, values = zip(*said, strict=True) if said else ((), ())
        text, length, connection = _form_of(status, names)
        head = text % values
        if len(head) - len(head.translate(None, _CONTROL)) != 2 * len(said):
            raise RuntimeError("A header of the response has a control character in it.")
        self.response_started, self.waiting_for_100_continue = True, False
        if connection >= 0 and b"close" in values[connection]:
            self.keep_alive = False
        elif not self.keep_alive:
            head += b"\r\nconnection: close"
        if length >= 0:
            self.expected_content_length = int(values[length])
        elif status not in _WITHOUT_BODY and self.scope["method"] != "HEAD":
            self.chunked_encoding = True
            head += b"\r\ntransfer-encoding: chunked"
        self._head = head + b"\r\n\r\n"

    def _continue(self, body: bytes, more: bool) -> None:
        head, self._head = self._head, b""
        if self.chunked_encoding:
            end = b"\r\n" if more else b"\r\n0\r\n\r\n"
            said = b"".join((head, b"%x\r\n" % len(body), body, end)) if body else head + end[2:]
        else:
            said = head + self._measured(body, more)
        if self._gathered is not None:
            self._gather(said, self._gathered, more)
        elif said:
            self.transport.write(said)
        if not more:
            self._complete()

    def _continue_apart(self, pieces: Sequence[bytes]) -> None:
        """The same for several pieces, of which none is the last."""
        head, self._head = self._head, b""
        if self.chunked_encoding:
            said = b"".join([b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece])
        else:
            said = self._measured(b"".join(pieces), True)
        if self._gathered is not None:
            self._gather(head + said, self._gathered, True)
        elif head or said:
            self.transport.write(head + said)

    def _gather(self, said: bytes, before: bytearray, more: bool) -> None:
        if more and not before:
            self._loop.call_soon(self.flush)
        before += said
        if not more or len(before) > HIGH_WATER_LIMIT:
            self.flush()

    def _measured(self, body: bytes, more: bool) -> bytes:
        """What of a body goes out where its length was told, or there is to be none."""
        if self.scope["method"] == "HEAD":
            return b""
        self.expected_content_length -= len(body)
        if self.expected_content_length < 0 or (self.expected_content_length and not more):
            raise RuntimeError("The body of the response is not as long as its head says.")
        return body

    def _complete(self) -> None:
        self.response_complete, self._when_left = True, None
        if self._bell is not None:
            self._bell.set()
        if not self.keep_alive and not self.more_body:
            self.transport.close()
        elif not (self.keep_alive or self.transport.is_closing()):
            # Its client still sends. Closed on that, it would lose the answer: a reset takes back
            # what was not read. https://www.rfc-editor.org/rfc/rfc9112#section-9.6
            self.transport.write_eof()
        self.on_response()


def _scope_of(
    protocol: HttpToolsProtocol, headers: Mapping[bytes, bytes], version: str
) -> HTTPScope:
    """The request whose head is here."""
    path, raw_path, query = read_url(protocol.url)
    scope = {
        "type": "http",
        "asgi": {"version": protocol.asgi_version, "spec_version": "2.3"},
        "http_version": version,
        "method": protocol.parser.get_method().decode("ascii"),
        "scheme": protocol.scheme,
        "path": path,
        "raw_path": raw_path,
        "query_string": query,
        "root_path": protocol.root_path,
        "headers": protocol.headers,
        "server": protocol.server,
        "client": protocol.client,
        "state": protocol.app_state.copy(),
        CONNECTION: protocol,
        HEADERS: headers,
    }
    return cast(HTTPScope, scope)


class _Form(NamedTuple):
    """What a head has beside the values of its headers."""

    text: bytes
    length: int
    """Which of the values is the body's length, and which says what becomes of the connection;
    -1: none does.
    """
    connection: int


# Names are remembered, values are not.
@lru_cache(maxsize=256)
def _form_of(status: int, names: tuple[bytes, ...]) -> _Form:
    for name in names:
        if HEADER_RE.search(name):
            raise RuntimeError(f"The name of a header of the response is none: {name!r}.")
    lines = [name.lower().replace(b"%", b"%%") + b": %b" for name in names]
    text = b"\r\n".join((_STATUS_LINES[status].replace(b"%", b"%%"), *lines))
    places = {name: place for place, name in enumerate(names)}
    return _Form(text, places.get(b"content-length", -1), places.get(b"connection", -1))
