"""What is told of the gateway as a whole, to those who watch it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from adapters.protocol import Json
from middleware.config import Config, TelemetryConfig
from middleware.server.visits import Observer
from middleware.state.store import State
from middleware.telemetry.families import LEDGER_PENDING, STATE_UP
from middleware.telemetry.gauges import one
from middleware.telemetry.tally import Snapshot, Tally
from middleware.telemetry.traces import Tracer
from middleware.telemetry.vocabulary import Vocabulary

_FLUSH_SECONDS = 3.0


class Backlog(Protocol):
    """What the ledger says of itself."""

    @property
    def well(self) -> bool:
        """Whether rows could be written when that was last tried."""

    @property
    def pending(self) -> int:
        """Rows that are not written yet."""


@dataclass(slots=True)
class Vitals:
    names: Vocabulary
    tally: Tally
    scrape: Callable[[], Awaitable[Snapshot]]
    """Counts of all workers."""
    tracer: Tracer | None = None
    state: State | None = None
    """None: nothing is counted that outlives this process."""
    ledger: Backlog | None = None
    workers: int = 1
    draining: bool = False
    """It stops: no more requests should come."""

    def observers(self) -> tuple[Observer, ...]:
        return (self.tally, self.tracer) if self.tracer else (self.tally,)

    def follow(self, config: Config) -> None:
        self.tally.follow(config)

    def readiness(self) -> Json:
        if self.draining:
            return {"status": "draining"}
        state, ledger = self.state, self.ledger
        return {
            "status": "ready",
            "workers": self.workers,
            "state": {
                "kind": state.home if state else "memory",
                "ok": state is None or state.well,
            },
            "ledger": {
                "ok": ledger is None or ledger.well,
                "pending": ledger.pending if ledger else 0,
            },
        }

    def stop(self) -> None:
        """Send the traces that wait; blocks for a moment."""
        if self.tracer is not None:
            self.tracer.stop(_FLUSH_SECONDS)


def take_vitals(
    names: Vocabulary, telemetry: TelemetryConfig, say: Callable[[str], None]
) -> Vitals:
    tally = Tally(names)
    vitals = Vitals(names, tally, tally.snapshot, _tracer(names, telemetry, say))
    tally.gauges[STATE_UP.name] = one(lambda: vitals.state is None or vitals.state.well)
    tally.gauges[LEDGER_PENDING.name] = one(lambda: vitals.ledger.pending if vitals.ledger else 0)
    return vitals


def _tracer(
    names: Vocabulary, telemetry: TelemetryConfig, say: Callable[[str], None]
) -> Tracer | None:
    if telemetry.otlp is None:
        return None
    from middleware.telemetry.spans import SpanSender

    return Tracer(SpanSender(telemetry.otlp, telemetry.service_name, names), say)
