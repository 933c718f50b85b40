"""What a cassette holds: turns, each with its ask, the exchanges with upstreams, and the answer.

These are values; `file/` reads and writes them, `match/` finds a turn again, `replay/` plays it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from adapters.errors import Again
from adapters.protocol import Json, value_class
from adapters.wire.capture import CapturedTool
from middleware.cassettes.visitor import Operation
from middleware.config import CassetteMode

FORMAT = 1
"""The number of the file's format; a newer one is refused, older ones are read for ever."""
Mode = CassetteMode
Ended = Literal["whole", "cut", "reset", "timeout", "left"]
"""How an exchange or a turn ended; `left`: the client went away."""


@dataclass(frozen=True, slots=True)
class ExchangeFailure:
    """What broke an exchange, as the gateway told it."""

    code: str
    status: int
    again: Again
    message: str


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """One call of an upstream within a turn, byte for byte."""

    upstream: str
    """Its name in the config; its address is not kept."""
    path: str
    sent: bytes
    """The body that was sent, JSON."""
    method: str = "POST"
    status: int = 200
    """0: nothing was answered."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of the answer: those on a list, in lower case."""
    body: bytes = b""
    """All pieces of the answer, joined."""
    pieces: tuple[tuple[int, int], ...] = ()
    """Of each piece the milliseconds since the one before (since the question) and its bytes."""
    ended: Ended = "whole"
    failure: ExchangeFailure | None = None


@value_class
class RecordedAnswer:
    """What the client was told, folded; in OpenAI's shape whatever the door."""

    status: int = 200
    message: Json | None = None
    finish_reason: str | None = None
    usage: Json | None = None
    logprobs: Json | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    error: Json | None = None
    """OpenAI's error object, with `retry_after` where there was one; beside a message: a stream
    that broke off.
    """
    body: Json | None = None
    """A whole answer that is no chat: embeddings."""
    created: int | None = None
    """Seconds since 1970, as the answer says them; None: made from the turn."""


@dataclass(frozen=True, slots=True)
class CassetteTurn:
    """One request of a client and everything that answered it."""

    number: int
    body: Json
    """The ask as it was sent, scrubbed; in OpenAI's shape whatever the door."""
    answer: RecordedAnswer
    id: str = ""
    """The request's id, from which made ids derive; empty: made from the number."""
    operation: Operation = "chat"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of the ask: those on a list."""
    path: str = ""
    """Of the door it came by, where that could say more:"""
    own: Json = field(default_factory=dict)
    """The ask as it was said there."""
    exchanges: tuple[RecordedExchange, ...] = ()
    tools: tuple[CapturedTool, ...] = ()
    """What its calls of server tools came to."""
    ended: Ended = "whole"
    session: str = ""
    lane: str = ""
    at: int = 0
    """Milliseconds since its session began."""
    route: str = ""
    """The `x-usetool-route` it was answered by, if there was a choice."""
    kept: bool = False
    """Recorded with --keep-errors: its failure is meant, and played."""
    redacted: bool = False
    line: int = 0
    """Where it stands in its file; 0: it was not read from one."""

    @property
    def identity(self) -> str:
        return self.id or f"req_{self.number:024x}"

    @property
    def is_whole(self) -> bool:
        """Nothing went wrong in it, upstream or on the client's side."""
        return self.ended == "whole" and self.answer.error is None

    @property
    def streamed(self) -> bool:
        return self.body.get("stream") is True

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))


@dataclass(frozen=True, slots=True)
class Cassette:
    """One file."""

    turns: tuple[CassetteTurn, ...] = ()
    routes: Mapping[str, Json] = field(default_factory=dict)
    """Of each model's public name what is needed to answer for it: kind, name, options."""
    facts: tuple[Json, ...] = ()
    """Small questions to upstreams: `{upstream, method, path, ask, answer}`."""
    match: Json = field(default_factory=dict)
    diff: Json = field(default_factory=dict)
    by: str = ""
    """The version that wrote it."""
    recorded: str = ""
    """The day, YYYY-MM-DD."""
    server: Mapping[str, Any] = field(default_factory=dict)
    """What of [server] changes how asks are read: strict, history_repair."""
