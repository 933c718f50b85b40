"""`Door`: what the server asks of a protocol that clients speak; `doors/chat/` is one.

A door is pure, as encode and decode are: values in, values out. It names no adapter, and what is
outside of `doors/` binds `Door` alone. Which one it is, is said where a command begins
(`server/app.py`, `cli/explain.py`), and by `FALLBACK` for what is no HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from adapters.errors import GatewayError
from adapters.protocol import ChatRequest, Event, Json, RequestContext, value_class
from adapters.receipts import Receipt
from middleware.doors.endpoint import Endpoint

PING = b": ping\n\n"
"""A comment, which every reader of SSE passes over; NDJSON has nothing like it."""
WAIT = "5"
"""Seconds until a client may ask again, where nobody says how long."""


def wait_headers(error: GatewayError | None) -> Mapping[str, str]:
    """What clients of most protocols look for at a 429, whether or not its upstream said it."""
    if error is None or error.status != 429 or error.code == "insufficient_quota":
        return {}
    return {"retry-after": error.retry_after or WAIT}


@value_class
class Stamp:
    """What ids and times of one answer are made of."""

    id: str
    """Of the request, `req_…`; a replay has the recorded one."""
    created: int
    """Seconds since 1970."""
    now: Callable[[], float]
    """The same as it goes on; in a replay it stands still."""
    began: float = 0.0
    """When the request came."""


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

    @property
    def ready(self) -> Callable[[Stamp], bytes] | None:
        """What answers where no model is needed; else None."""

    def stream(self, stamp: Stamp) -> Stream:
        """What writes a streamed answer."""

    def fold(self, stamp: Stamp, events: Sequence[Event]) -> bytes:
        """Write the same events as one body; raises `Truncated` if they have no end."""


class Door(Protocol):
    """A protocol we are called in."""

    @property
    def name(self) -> str:
        """As `[server] doors` has it; the log, metrics and the ledger too."""

    @property
    def endpoint(self) -> Endpoint:
        """Its address, as `/openapi.json` describes it."""

    @property
    def roots(self) -> tuple[str, ...]:
        """Paths under which all addresses are its own."""

    def headers(self, request_id: str, error: GatewayError | None = None) -> Mapping[str, str]:
        """Headers of its own on every answer; of an error also those it says otherwise than we, or
        leaves empty, as it does not say them.
        """

    def parse(
        self, body: bytes, *, repair: bool, strict: bool, call: RequestContext | None = None
    ) -> ParsedRequest:
        """Read a request or raise a `BadRequest` that says what to send instead."""

    def error_status(self, error: GatewayError) -> int:
        """The status of HTTP for an error."""

    def error_body(self, error: GatewayError, request_id: str = "") -> bytes:
        """Write what stands in place of an answer."""


class References(NamedTuple):
    """What a body names instead of saying it."""

    model: str = ""
    previous: str = ""
    """Id of the answer it goes on from."""
    others: tuple[str, ...] = ()
    """Ids of further answers that it names parts of."""
    known: Any = None
    """What its door read of it to say so."""


class KeptRecord(NamedTuple):
    """An answer, to be kept for requests that name it."""

    id: str
    value: bytes
    before: Sequence[str]
    """Ids of the answers it goes on from: they are needed as long as it is."""


class KeptAnswer(NamedTuple):
    """What a record says."""

    response: Json
    input: list[Json]
    """The items that were new in its request."""
    before: list[str]
    """Ids of the answers before it, the first one first."""


class KeepingDoor(Door, Protocol):
    """A door whose clients name what was said before. The server keeps records and finds them; the
    door says what is in them.
    """

    def references(self, body: bytes, owner: str) -> References:
        """Say what must be found before a body of this client is read."""

    def unpacked(self, record: bytes) -> KeptAnswer | None:
        """Read a record; None: it is of another version."""

    def knowing(self, answers: Mapping[str, KeptAnswer] | None, wanted: References) -> KeepingDoor:
        """The door of one request, with what was found of what it names; None: nothing can be
        kept.
        """

    def keeps(self, parsed: ParsedRequest) -> bool:
        """Whether its answer is to be kept."""

    def record(self, parsed: ParsedRequest, stamp: Stamp, events: Sequence[Event]) -> KeptRecord:
        """What is kept of an answer."""


class Doors:
    """Those the gateway has, by the addresses that are theirs."""

    def __init__(
        self, doors: Sequence[Door], fallback: Door, keeping: Sequence[KeepingDoor] = ()
    ) -> None:
        doors = (*doors, *keeping)
        self.at: Mapping[str, Door] = {door.endpoint.path: door for door in doors}
        """Path of a POST that a model answers → its door."""
        self.keeping: Mapping[str, KeepingDoor] = {door.endpoint.path: door for door in keeping}
        self._roots = [(root, door) for door in doors for root in door.roots]
        self._fallback = fallback

    def owner(self, path: str) -> Door | None:
        """The door an address belongs to; None: it is of no protocol alone."""
        if (door := self.at.get(path)) is not None:
            return door
        for root, door in self._roots:
            if path == root or path.startswith(f"{root}/"):
                return door
        return None

    def reading(self, body: Json, name: str = "") -> Door:
        """The door that a body is for, by what it says and no other's would; without a name, the
        first where nothing tells them apart.
        """
        tools = body.get("tools")
        of_tools = (tool for tool in tools or () if isinstance(tool, dict))
        said = frozenset(body).union(*of_tools)
        doors = [door for door in self.at.values() if name in ("", door.name)]
        return max(doors, key=lambda door: len(said & door.endpoint.marks))

    def of(self, path: str) -> Door:
        """In whose words what goes wrong at an address is told."""
        return self.owner(path) or self._fallback
