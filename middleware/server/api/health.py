"""The addresses for machines that watch: health, readiness, metrics."""

from __future__ import annotations

import asyncio
from typing import Literal, NotRequired

import orjson
from fastapi import FastAPI, Request, Response
from typing_extensions import TypedDict

from adapters.errors import BadRequest
from middleware.doors.endpoint import described
from middleware.server.api.answers import KEYED, answered, errors, get, headers
from middleware.server.api.routes import access
from middleware.server.edge import request_id
from middleware.telemetry.tally import Snapshot
from middleware.telemetry.vitals import Vitals

METRICS = "/metrics"


@described
class Health(TypedDict):
    status: Literal["ok"]


class StateHealth(TypedDict):
    kind: Literal["memory", "file", "redis"]
    ok: bool
    """Whether limits and budgets are counted there now; else each gateway counts its own."""


class LedgerHealth(TypedDict):
    ok: bool
    pending: int
    """Rows that are not written yet."""


@described
class GatewayReadiness(TypedDict):
    status: Literal["ready", "draining"]
    workers: NotRequired[int]
    state: NotRequired[StateHealth]
    ledger: NotRequired[LedgerHealth]


def add_health_routes(api: FastAPI) -> None:
    get(api, "/healthz", Health, 403, 500)(check_health)
    get(api, "/readyz", GatewayReadiness, 403, 500)(check_readiness)
    told = {"description": "Prometheus' text format.", "headers": headers({})}
    api.add_api_route(
        METRICS,
        show_metrics,
        methods=["GET", "HEAD"],
        response_class=Response,
        responses={
            200: {**told, "content": {"text/plain": {"schema": {"type": "string"}}}},
            **errors((401, 403, 500)),
        },
        openapi_extra={**KEYED},
    )


async def check_health() -> Response:
    """Whether the process answers. No key."""
    return answered({"status": "ok"})


async def check_readiness(request: Request) -> Response:
    """Whether it may be sent requests, and how state and ledger are. No key."""
    vitals: Vitals = request.app.state.vitals
    status = 503 if vitals.draining else 200
    sent = {"x-request-id": request_id()}
    return Response(orjson.dumps(vitals.readiness()), status, sent, "application/json")


async def show_metrics(request: Request) -> Response:
    """Counts of all requests. With [clients] in the config it asks for the key of an admin."""
    _require_watcher(request)
    vitals: Vitals = request.app.state.vitals
    # In a thread: what it imports at the first time would hold every stream.
    text, kind = await asyncio.to_thread(_exposed, await vitals.scrape())
    return Response(text, 200, {"x-request-id": request_id(), "content-type": kind})


def _exposed(snapshot: Snapshot) -> tuple[bytes, str]:
    from middleware.telemetry.exposition import CONTENT_TYPE, exposed

    return exposed(snapshot), CONTENT_TYPE


def _require_watcher(request: Request) -> None:
    if not access(request).metrics:
        raise BadRequest(
            "Metrics are for admins: `admin` of [clients] in the gateway's config says who is one.",
            status=403,
            code="metrics_not_allowed",
        )
