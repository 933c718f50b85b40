"""The HTTP side of the server: what uvicorn leaves open.

It answers what is no HTTP in OpenAI's shape, stays with HTTP/1.1 where a client offers another
protocol, and closes connections on which a request does not arrive (uvicorn waits for the end of
its head and of its body for ever).
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from adapters.errors import BadRequest
from middleware.doors.openai import error_body

_HEAD = (
    b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    b"connection: close\r\n\r\n"
)


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol with a limit on how long a request may take to arrive."""

    seconds: ClassVar[float] = 30.0
    """From its first byte to its last; also from the connection to the first byte."""
    _began: float | None = None
    """When a request began to arrive; None while there is none."""
    _asked = False
    """Anything was ever sent."""
    _in_body = False
    _watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._began = self.loop.time()
        self._watch = self.loop.call_later(self.seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        while data:
            data = self._feed(data)

    def _feed(self, data: bytes) -> bytes:
        """Let the parser read; returns what it has to read again."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserUpgrade as offer:
            # The parser stops behind such a head, and the body is lost. Java's HttpClient offers
            # HTTP/2 with every request: https://www.rfc-editor.org/rfc/rfc9110#section-7.8
            if self._should_upgrade():
                return self._head_without_offer() + data[offer.args[0] :]
        return b""

    def _should_upgrade(self) -> bool:
        """Until the offer is taken out of its head, a request counts as not there."""
        return any(name == b"upgrade" for name, _ in self.headers)

    def _head_without_offer(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        lines += [b"%b: %b" % (name, value) for name, value in self.headers if name != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
        return b"\r\n".join((*lines, b"\r\n"))

    def on_message_begin(self) -> None:
        self._began, self._asked, self._in_body = self.loop.time(), True, False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_body = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._began, self._in_body = None, False
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, b"Bad Request", f"{msg} It is not valid HTTP/1.1.")

    # One timer a connection: a timer a request would cost every request for the few that drip.
    def _look(self) -> None:
        began, now = self._began, self.loop.time()
        if began is None or self._is_answering():
            began = now
        if now - began < self.seconds:
            self._watch = self.loop.call_at(began + self.seconds, self._look)
        elif not self._asked:
            self.transport.close()
        else:
            late = f"The request did not arrive within {self.seconds:g} seconds."
            self._refuse(408, b"Request Timeout", late)

    def _is_answering(self) -> bool:
        cycle = self.cycle
        begun = cycle is not None and cycle.response_started and not cycle.response_complete
        return begun or bool(self.pipeline)

    def _has_answered(self) -> bool:
        """Before the whole request was here."""
        return self._in_body and self.cycle is not None and self.cycle.response_complete

    def _refuse(self, status: int, reason: bytes, message: str) -> None:
        # In the middle of another answer, or behind this one's, nothing can be said.
        if not self._is_answering() and not self._has_answered():
            body = error_body(BadRequest(message, status=status, code="invalid_http"))
            self.transport.write(_HEAD % (status, reason, len(body)) + body)
        self.transport.close()
