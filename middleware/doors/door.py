"""`Door`: what the server asks of a protocol that clients speak; `doors/chat/` is one.

A door is pure, as encode and decode are: values in, values out. It names no adapter, and what is
outside of `doors/` binds `Door` alone. Which one it is, is said where a command begins
(`server/app.py`, `cli/explain.py`), and by `FALLBACK` for what is no HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from adapters.errors import GatewayError
from adapters.protocol import ChatRequest, Event, RequestContext
from adapters.receipts import Receipt
from middleware.doors.endpoint import Endpoint

SSE = "text/event-stream; charset=utf-8"
PING = b": ping\n\n"
"""A comment, which every reader of SSE passes over; NDJSON has nothing like it."""


class Stream(Protocol):
    """Writes one streamed answer; it may count its frames, so that all of them come from here."""

    @property
    def media_type(self) -> str:
        """Its content-type."""

    def render(self, events: Sequence[Event]) -> bytes:
        """Write what one batch says; all of it leaves at once."""

    def keep_for_last_frame(self, receipt: Receipt) -> None:
        """Keep notes that are too late for the headers."""

    def tell(self, member: str, value: Any) -> None:
        """Keep a member of `x_usetool` for the last frame."""

    def heartbeat(self) -> bytes:
        """Write what keeps a silent connection open, before and after the first event."""

    def error_frame(self, error: GatewayError, request_id: str, untold: Receipt) -> bytes:
        """Write the last frame of a stream that failed, with the notes that no header has told."""


class ParsedRequest(Protocol):
    """A request in the shape all adapters read, and the form of answer its client wants."""

    @property
    def request(self) -> ChatRequest:
        """What the adapters are asked."""

    @property
    def receipt(self) -> Receipt:
        """What the door itself changed or lost."""

    def stream(self, request_id: str, created: int) -> Stream:
        """What writes a streamed answer."""

    def fold(self, request_id: str, created: int, events: Iterable[Event]) -> bytes:
        """Write the same events as one body; raises `Truncated` if they have no end."""


class Door(Protocol):
    """A protocol we are called in."""

    @property
    def endpoint(self) -> Endpoint:
        """Its address, as `/openapi.json` describes it."""

    def parse(
        self, body: bytes, *, repair: bool, strict: bool, call: RequestContext | None = None
    ) -> ParsedRequest:
        """Read a request or raise a `BadRequest` that says what to send instead."""

    def error_status(self, error: GatewayError) -> int:
        """The status of HTTP for an error."""

    def error_body(self, error: GatewayError, request_id: str = "") -> bytes:
        """Write what stands in place of an answer."""
