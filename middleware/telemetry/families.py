"""Every metric: its name, its labels, what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
# As OpenTelemetry's conventions for generative AI want them.
_CALL_SECONDS = tuple(0.01 * 2**power for power in range(14))
_TOKENS = tuple(4.0**power for power in range(14))
_CALLED = (
    "gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model",
    "gen_ai_response_model",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Family:
    """One metric, whatever its labels say."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    about: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    """Of a histogram's buckets; the last one has none."""
    together: Literal["sum", "max", "min"] = "sum"
    """What several workers' numbers come to."""


REQUESTS = Family(
    "usetool_requests_total", "counter", "Requests of clients that were answered or refused",
    ("client", "model", "answered", "upstream", "status", "stream"),
)  # fmt: skip
CALLS = Family(
    "usetool_upstream_calls_total", "counter", "Calls of upstreams",
    ("upstream", "model", "outcome"),
)  # fmt: skip
PASSED = Family(
    "usetool_passed_total", "counter", "Times a model was considered and not asked",
    ("model", "reason"),
)  # fmt: skip
TOKENS = Family(
    "usetool_tokens_total", "counter",
    "Tokens; cached and cache_write are within input, reasoning within output",
    ("client", "model", "kind"),
)  # fmt: skip
COST = Family("usetool_cost_usd_total", "counter", "US dollars", ("client", "model"))
LIMITED = Family(
    "usetool_limited_total", "counter", "Requests that a limit of their client refused",
    ("client", "limit"),
)  # fmt: skip
REQUEST_SECONDS = Family(
    "usetool_request_seconds", "histogram", "From a request to the end of its answer",
    ("model",), _SECONDS,
)  # fmt: skip
FIRST_EVENT_SECONDS = Family(
    "usetool_first_event_seconds", "histogram", "From a request to the first word of its answer",
    ("model",), _SECONDS,
)  # fmt: skip
CALL_SECONDS = Family(
    "gen_ai_client_operation_duration_seconds", "histogram",
    "From a call of an upstream to its end",
    _CALLED, _CALL_SECONDS,
)  # fmt: skip
CALL_TOKENS = Family(
    "gen_ai_client_token_usage", "histogram", "Tokens of a call, as the upstream counts them",
    (*_CALLED, "gen_ai_token_type"), _TOKENS,
)  # fmt: skip
OPEN_REQUESTS = Family("usetool_open_requests", "gauge", "Requests that are being answered")
QUEUED = Family(
    "usetool_queued_requests", "gauge", "Requests that wait for a free slot", ("upstream",),
    together="max",
)  # fmt: skip
BREAKERS = Family(
    "usetool_breaker_state", "gauge", "0 closed, 1 half open, 2 open", ("upstream", "model"),
    together="max",
)  # fmt: skip
RESTING = Family(
    "usetool_keys_resting", "gauge", "Keys that rest from a limit or a refusal", ("upstream",),
    together="max",
)  # fmt: skip
STATE_UP = Family(
    "usetool_state_up", "gauge", "1: what is counted is counted where [state] says", together="min"
)
LEDGER_PENDING = Family("usetool_ledger_pending", "gauge", "Rows that are not written yet")
BUDGET_SPENT = Family(
    "usetool_budget_spent_usd", "gauge", "Spent in the current period of a client's budget",
    ("client",), together="max",
)  # fmt: skip
FAMILIES = (
    REQUESTS, CALLS, PASSED, TOKENS, COST, LIMITED, REQUEST_SECONDS, FIRST_EVENT_SECONDS,
    CALL_SECONDS, CALL_TOKENS, OPEN_REQUESTS, QUEUED, BREAKERS, RESTING, STATE_UP, LEDGER_PENDING,
    BUDGET_SPENT,
)  # fmt: skip
