"""The HTTP side of the server: what uvicorn leaves open.

It answers what is no HTTP in OpenAI's shape, and closes connections on which a request does not
arrive (uvicorn waits for the end of headers for ever).
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from adapters.errors import BadRequest
from middleware.doors.openai import error_body

HEADER_SECONDS = 30.0
_HEAD = (
    b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    b"connection: close\r\n\r\n"
)


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol with a limit on how long a request may take to begin."""

    _began: float | None = None
    """When the head of a request began to arrive; None while there is none."""
    _watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._began = self.loop.time()
        self._watch = self.loop.call_later(HEADER_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._began = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._began = None
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, b"Bad Request", f"{msg} It is not valid HTTP/1.1.")

    # One timer a connection: a timer a request would cost every request for the few that drip.
    def _look(self) -> None:
        began, now = self._began, self.loop.time()
        if began is not None and now - began >= HEADER_SECONDS:
            self._refuse(
                408, b"Request Timeout", f"No request arrived within {HEADER_SECONDS:g} seconds."
            )
            return
        self._watch = self.loop.call_at((began or now) + HEADER_SECONDS, self._look)

    def _refuse(self, status: int, reason: bytes, message: str) -> None:
        body = error_body(BadRequest(message, status=status, code="invalid_http"))
        self.transport.write(_HEAD % (status, reason, len(body)) + body)
        self.transport.close()
