"""The byte seam of a replay: recorded exchanges stand where connections do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import orjson

from adapters.errors import BY_STATUS, GatewayError, Truncated, Unavailable, UpstreamError
from adapters.protocol import ChatRequest
from adapters.wire.capture import Capture, CapturedTool
from adapters.wire.failures import timed_out
from adapters.wire.http import Link
from adapters.wire.json_text import load
from adapters.wire.reply import Reply, unheard
from middleware.cassettes.cassette import ExchangeFailure, RecordedExchange
from middleware.cassettes.match import NOTHING, Step, path_text, unequal
from middleware.wrappers.retry import Attempts

_KINDS: Mapping[str, type[UpstreamError]] = {
    **{row.code: row.kind for row in BY_STATUS.values()},
    "upstream_unreachable": Unavailable,
    "upstream_timeout": Unavailable,
    Truncated.code: Truncated,
}
_TYPES: Mapping[int, str] = {status: row.type for status, row in BY_STATUS.items()}
_MOST_PATHS = 20
_GROWING = "options.num_ctx"
"""A window that grows with all a gateway is asked, of which another cassette may have some."""
FactKey = tuple[str, str, str, bytes]


class Drift(NamedTuple):
    """Where this version does otherwise than the one that recorded."""

    kind: str
    """encode, extra, unused; for `verify` decode too."""
    path: str = ""
    change: str = ""


class PlayedTurn(Capture):
    """Gives a turn's exchanges to whoever asks, in their order per upstream; no connection is made.

    What would be sent is compared with what was sent.
    """

    def __init__(
        self, exchanges: Sequence[RecordedExchange], tools: Sequence[CapturedTool] = ()
    ) -> None:
        super().__init__()
        self._results = [*tools]
        self.elapsed = 0.0
        """Milliseconds since the question, as recorded."""
        self.drift: list[Drift] = []
        self.lacking = False
        """More was asked than was recorded."""
        self._waiting = list(enumerate(exchanges))
        self._last = ""

    def take(self, upstream: str, body: bytes | None) -> RecordedExchange | None:
        """Return the next exchange of an upstream; without a body nothing is compared."""
        self._last = upstream
        own = [one for one in self._waiting if one[1].upstream == upstream]
        if not own:
            self.lacking = True
            return None
        # A question that this version does not ask any more is passed over.
        same = (one for one in own if body is not None and _is_same(one[1].sent, body))
        taken = next(same, own[0])
        for one in own[: own.index(taken)]:
            self.drift.append(Drift("unused", f"upstream[{one[0]}]"))
            self._waiting.remove(one)
        self._waiting.remove(taken)
        position, exchange = taken
        if body is not None and not _is_same(exchange.sent, body):
            self.drift += _encode_drift(position, exchange.sent, body)
        return exchange

    def known_result(self, name: str, arguments: str) -> CapturedTool | None:
        """The next result of this call, or of one of this tool."""
        own = [one for one in self._results if one.name == name]
        if not own:
            self.lacking = True
            return CapturedTool(name, arguments, "Error: no result of it was recorded.", True)
        same = (one for one in own if one.arguments == arguments)
        taken = next(same, own[0])
        self._results.remove(taken)
        return taken

    def expected(self) -> Sequence[str]:
        return [exchange.upstream for _, exchange in self._waiting]

    def repeats(self) -> bool:
        """Whether the upstream that was asked last was asked again."""
        return any(exchange.upstream == self._last for _, exchange in self._waiting)

    def end(self) -> None:
        """Note what nobody asked for."""
        self.drift += [Drift("unused", f"upstream[{position}]") for position, _ in self._waiting]


def _is_same(sent: bytes, body: bytes) -> bool:
    if sent == body:
        return True
    try:
        return bool(orjson.loads(sent) == orjson.loads(body))
    except orjson.JSONDecodeError:
        return False


def _encode_drift(position: int, sent: bytes, body: bytes) -> Iterator[Drift]:
    try:
        recorded, now = orjson.loads(sent), orjson.loads(body)
    except orjson.JSONDecodeError:
        recorded, now = None, {}
    for found in drift_of("encode", recorded, now, ("upstream", position)):
        if (found.path, found.change) != (f"upstream[{position}].{_GROWING}", "changed"):
            yield found


def drift_of(kind: str, recorded: Any, now: Any, at: tuple[Step, ...] = ()) -> Iterator[Drift]:
    """Where two JSON values differ."""
    for found in islice(unequal(recorded, now, at), _MOST_PATHS):
        change = "changed"
        if NOTHING in (found.recorded, found.now):
            change = "added" if found.recorded is NOTHING else "removed"
        yield Drift(kind, path_text(found.steps), change)


class PlayedReply(Reply):
    """Its pieces one read at a time, then the end it had."""

    __slots__ = ("_exchange", "_pieces", "_played")

    def __init__(self, exchange: RecordedExchange, played: PlayedTurn) -> None:
        self.status = exchange.status
        self.headers = exchange.headers
        self._exchange = exchange
        self._played = played
        self._pieces = _pieces(exchange)
        self.heard = unheard

    async def arriving(self, due: float) -> bytes:
        piece = next(self._pieces, None)
        if piece is not None:
            self._played.elapsed += piece[0]
            return piece[1]
        if self._exchange.ended != "whole":
            raise failure_of(self._exchange)
        return b""

    def is_whole(self) -> bool:
        return False

    async def settle(self) -> None:
        pass

    def close(self) -> None:
        pass


def _pieces(exchange: RecordedExchange) -> Iterator[tuple[int, bytes]]:
    start = 0
    for wait, size in exchange.pieces:
        if size:  # an empty piece would be the end
            yield wait, exchange.body[start : start + size]
        start += size
    if start < len(exchange.body):
        yield 0, exchange.body[start:]


def failure_of(exchange: RecordedExchange) -> GatewayError:
    """The error a broken exchange was, or what its ending means where none is written."""
    upstream, failure = exchange.upstream, exchange.failure
    if failure is not None:
        return _error(failure, exchange.headers.get("retry-after"))
    if exchange.ended == "timeout":
        return timed_out(upstream, "fell silent" if exchange.status else "did not answer in time")
    if exchange.status:
        return Truncated(f"Upstream '{upstream}' broke off in the middle of its answer.")
    return Unavailable(
        f"The connection to upstream '{upstream}' was closed by it before it answered.",
        code="upstream_unreachable",
    )


def _error(failure: ExchangeFailure, retry_after: str | None) -> GatewayError:
    kind = _KINDS.get(failure.code, UpstreamError)
    error = kind(failure.message, code=failure.code, status=failure.status, retry_after=retry_after)
    error.type = _TYPES.get(failure.status, error.type)
    error.again = failure.again
    return error


@dataclass(frozen=True, slots=True)
class PlayedLink(Link):
    """An upstream that is recordings."""

    facts: Mapping[FactKey, Any] = field(default_factory=dict, repr=False)
    compares: bool = True

    async def post(
        self, path: str, body: bytes, due: float, capture: Capture | None = None
    ) -> Reply:
        assert isinstance(capture, PlayedTurn)
        exchange = capture.take(self.name, body if self.compares else None)
        if exchange is None:
            raise UpstreamError(f"Upstream '{self.name}' was not asked so often when recorded.")
        if not exchange.status:
            raise failure_of(exchange)
        return await self.accepted(PlayedReply(exchange, capture), due)

    async def fetch(self, method: str, path: str, body: bytes | None, seconds: float) -> Any:
        key = fact_key(self.name, method, path, load(body) if body else None)
        if key not in self.facts:
            raise UpstreamError(f"Upstream '{self.name}' was not asked for {path} when recorded.")
        return self.facts[key]


def fact_key(upstream: str, method: str, path: str, ask: object) -> FactKey:
    return upstream, method, path, orjson.dumps(ask, option=orjson.OPT_SORT_KEYS)


async def repeat_as_recorded(error: GatewayError, _: Attempts, request: ChatRequest) -> None:
    """Ask again, at once, what was asked again."""
    if error.again != "same" or error.begun:
        raise error
    played = request.call.capture
    if not (isinstance(played, PlayedTurn) and played.repeats()):
        error.again = "elsewhere"
        raise error
