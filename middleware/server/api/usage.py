"""`GET /v1/usage`: what was used, and what of a budget is left."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Annotated, Literal, NotRequired, get_args

from fastapi import FastAPI, Query, Request, Response
from typing_extensions import TypedDict

from adapters.errors import BadRequest, Busy
from middleware.accounts.ledger import LedgerAway
from middleware.accounts.ledger.book import By
from middleware.accounts.usage import UsageQuestion, usage_of
from middleware.doors.endpoint import described
from middleware.server.api.answers import answered, get
from middleware.server.api.routes import access
from middleware.server.edge import Edge

PATH = "/v1/usage"
_By = Annotated[str, Query(description="`model` (who answered), `client`, `day` or `upstream`.")]
_From = Annotated[str, Query(alias="from", description="The first day, `2026-01-31`; UTC.")]
_To = Annotated[str, Query(alias="to", description="The last day.")]


class UsageFigures(TypedDict):
    requests: int
    prompt_tokens: int
    cached_tokens: int
    """Within `prompt_tokens`, and so are those written."""
    cache_write_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    """Within `completion_tokens`."""
    cost: float
    """USD."""


class UsageRow(UsageFigures, total=False):
    """It has one of these, as it was asked."""

    model: str
    client: str
    day: str
    upstream: str


class BudgetState(TypedDict):
    limit: float
    spent: float
    """What is at work included."""
    period: Literal["hour", "day", "week", "month", "total"]
    resets: str | None
    """When the period ends, UTC."""


@described
class UsageReport(TypedDict):
    object: Literal["list"]
    data: list[UsageRow]
    total: UsageFigures
    budget: NotRequired[BudgetState]
    """The caller's, where it has one."""


def add_usage_route(api: FastAPI) -> None:
    get(api, PATH, UsageReport, 400, 401, 403, 404, 500, 503)(report_usage)


async def report_usage(
    request: Request, by: _By = "model", since: _From = "", until: _To = ""
) -> Response:
    """A client sees its own, an admin and the owner of the machine all of it."""
    edge: Edge = request.app.state.edge
    accounts, may = edge.accounts, access(request)
    if accounts.ledger is None:
        told = 'This gateway keeps no ledger: its config says [ledger] url = "off".'
        raise BadRequest(told, status=404, code="ledger_off")
    asked = UsageQuestion(_by(by), _day(since, "from"), _day(until, "to"), may.name)
    try:
        found = await asyncio.to_thread(usage_of, accounts.ledger.book, asked)
    except LedgerAway:
        raise Busy("The ledger cannot be read now. Ask again later.") from None
    budget = await accounts.budget(may.client)
    return answered(found if budget is None else {**found, "budget": budget})


def _by(text: str) -> By:
    found: By | None = next((one for one in get_args(By) if one == text), None)
    if found is None:
        told = f"'by' is '{text[:40]}', but must be one of {', '.join(get_args(By))}."
        raise BadRequest(told, param="by")
    return found


def _day(text: str, param: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        told = f"'{param}' is '{text[:40]}', but must be a day such as 2026-01-31."
        raise BadRequest(told, param=param) from None
