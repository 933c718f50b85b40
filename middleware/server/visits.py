"""`Visit`: one request as log, metrics, traces and ledger will tell it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from adapters.errors import GatewayError
from adapters.protocol import Finish, Journey, Json, Opened, Usage
from adapters.receipts import Receipt

LIVE = "live"
"""What an answer says of its recording where it was asked in spite of one."""
Operation = Literal["chat", "embeddings"]
# A client may send as many strange fields as it likes, of any length.
TOGETHER = 16
"""Requests that have ended and are told of at once, by whoever tells of them: what runs again and
again takes half the time of what runs once a request.
"""
_NOTES, _LONGEST_FIELD = 50, 200


@dataclass(slots=True)
class Visit:
    """One request, as the log will tell it; prompts and answers are never in it."""

    id: str
    began: float
    method: str = "POST"
    path: str = ""
    model: str = ""
    streamed: bool = False
    created: int = 0
    """Seconds since 1970, as the answer says them."""
    upstream: str = ""
    upstream_model: str = ""
    upstream_request_id: str = ""
    status: int = 0
    first_event: float | None = None
    receipt: Receipt = ()
    finish: Finish | None = None
    usage: Usage | None = None
    """Of an answer that has no finish."""
    error: GatewayError | None = None
    replay: str = ""
    """The turn of a cassette that answered."""
    traceparent: str = ""
    """The client's header, where traces are made."""
    client: str = "default"
    """The name of who asked."""
    owner: str | None = None
    """Digest of the key it came with; None: nobody looked for one."""
    operation: Operation = "chat"
    door: str = "chat"
    journey: Journey = field(default_factory=Journey)
    """Who was asked for it, and what came of that."""
    cost: float | None = None
    """USD; None: nothing was used, or no price is known."""
    spent: Usage | None = None
    """Tokens of all calls together, estimates included."""
    counted: bool = False
    """It was let in: the ledger has a row of it."""
    limit: str = ""
    """Which limit of the client refused it."""
    gone: bool = False
    """The client closed its connection before the end."""

    @property
    def played(self) -> bool:
        """It was answered from a recording: nobody pays for it."""
        return self.replay not in ("", LIVE)

    def opened(self, event: Opened, now: float) -> None:
        self.first_event = now
        self.upstream = event.upstream.name
        self.upstream_model = event.upstream.model
        self.upstream_request_id = event.upstream.request_id
        self.receipt += event.receipt

    def line(self, now: float) -> Json:
        told: dict[str, Any] = {
            "id": self.id,
            "client": self.client,
            "door": self.door,
            "model": self.model,
            "status": self.status,
            "seconds": round(now - self.began, 4),
            "stream": self.streamed,
        }
        if self.path:
            told["method"], told["path"] = self.method, self.path
        if self.first_event is not None:
            told["first_event"] = round(self.first_event - self.began, 4)
            told["upstream"] = self.upstream
            told["upstream_model"] = self.upstream_model
        if self.replay:
            told["replay"] = self.replay
        if self.upstream_request_id:
            told["upstream_request_id"] = self.upstream_request_id
        finish, journey = self.finish, self.journey
        if finish is not None:
            told["finish"] = finish.reason
        if usage := finish.usage if finish is not None else self.usage:
            told["usage"] = [usage.prompt, usage.completion]
            if usage.parts:
                told["usage_parts"] = _parts_of(usage)
        if journey.steps:
            self._tell_journey(told)
        if journey.rounds or journey.tools:
            _tell_tools(journey, told)
        self._tell_trouble(told)
        return told

    def _tell_journey(self, told: dict[str, Any]) -> None:
        journey, calls = self.journey, self.journey.calls()
        told["route"], answered, key = journey.summary()
        told["calls"] = len(calls)
        if answered:
            told["answered"] = answered
        elif calls:
            key = calls[-1].key
        if key:
            told["key"] = key
        if journey.queued:
            told["queued"] = round(journey.queued, 4)
        if self.cost is not None:
            told["cost"] = self.cost

    def _tell_trouble(self, told: dict[str, Any]) -> None:
        if self.limit:
            told["limit"] = self.limit
        if self.receipt:
            told["warnings"] = [
                f"{note.code}: {note.field[:_LONGEST_FIELD]}: {note.text}"
                for note in self.receipt[:_NOTES]
            ]
        if self.error is not None:
            told["error"] = {"code": self.error.code, "message": self.error.message}
        if self.gone:
            told["client_gone"] = True


class Observer(Protocol):
    """Takes in every request to a model at its end: the ledger, metrics, traces."""

    def ended(self, visit: Visit, now: float) -> None:
        """Never waits and never fails; the visit is not changed any more."""


def _tell_tools(journey: Journey, told: dict[str, Any]) -> None:
    if journey.rounds:
        told["rounds"] = journey.rounds
    if journey.tools:
        told["server_tools"] = [run._asdict() for run in journey.tools]


def _parts_of(usage: Usage) -> Json:
    return {name: used and _figures(used) for name, used in usage.parts}


def _figures(usage: Usage) -> list[int]:
    return [usage.prompt, usage.completion]
