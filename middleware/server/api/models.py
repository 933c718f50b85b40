"""`GET /v1/models`: each model as OpenAI and Anthropic describe theirs, in one object."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from adapters.errors import BadRequest
from adapters.protocol import Json
from middleware.routing import Routes
from middleware.server.api.answers import ModelObject, ModelObjects, answered, get
from middleware.server.edge import Edge

_All = Annotated[
    str, Query(alias="all", description="`true`: those that cannot answer too, with the reason.")
]
_Limit = Annotated[str, Query(description="At most so many; not given: all.")]
_After = Annotated[str, Query(alias="after_id", description="Those behind this one.")]
_Before = Annotated[str, Query(alias="before_id", description="Those in front of this one.")]
_SHOWN = 60


def add_model_routes(api: FastAPI) -> None:
    get(api, "/v1/models", ModelObjects, 400, 401, 403, 500)(list_models)
    get(api, "/v1/models/{model:path}", ModelObject, 401, 403, 404, 500)(describe_one_model)


async def list_models(
    request: Request,
    everything: _All = "",
    limit: _Limit = "",
    after: _After = "",
    before: _Before = "",
) -> Response:
    """Those that can answer now, wildcards as their upstreams fill them."""
    found = await models_of(request, everything.lower() in ("1", "true", "yes"))
    shown = _between([_in_both_shapes(model) for model in found], after, before)
    some = shown
    if limit:
        most = int(limit) if limit.isdecimal() and len(limit) < 5 else 0
        if not most:
            raise BadRequest("'limit' must be a number from 1 to 9999.", param="limit")
        some = shown[-most:] if before else shown[:most]
    answer: Json = {"object": "list", "data": some, "has_more": len(some) < len(shown)}
    ids = [model["id"] for model in some] or [None]
    return answered({**answer, "first_id": ids[0], "last_id": ids[-1]})


async def describe_one_model(request: Request, model: str) -> Response:
    """Every name that would be answered, slashes included."""
    return answered(_in_both_shapes(await model_of(request, model)))


async def models_of(request: Request, everything: bool = False) -> list[Json]:
    """The caller's models; of a cassette that is replayed, those it has."""
    recorded = _recorded_models(request)
    if recorded is not None:
        return recorded
    opens = _routes(request).opens
    return await _edge(request).runtime.models.entries(opens, everything)


async def model_of(request: Request, model: str) -> Json:
    """One of the caller's models, or raise `UnknownModel`."""
    for found in _recorded_models(request) or ():
        if found["id"] == model:
            return found
    _routes(request).entry(model)  # or it does not exist for this client
    return await _edge(request).runtime.models.entry(model)


def _between(models: list[Json], after: str, before: str) -> list[Json]:
    ids = [model["id"] for model in models]
    for name, wanted in (("after_id", after), ("before_id", before)):
        if wanted and wanted not in ids:
            told = f"'{name}' is '{wanted[:_SHOWN]}', and no model of the list has this id."
            raise BadRequest(told, param=name)
    first = ids.index(after) + 1 if after else 0
    return models[first : ids.index(before) if before else None]


def _in_both_shapes(model: Json) -> Json:
    made = datetime.fromtimestamp(model.get("created", 0), UTC)
    theirs = {"type": "model", "display_name": model["id"]}
    return {**model, **theirs, "created_at": made.isoformat().replace("+00:00", "Z")}


def _edge(request: Request) -> Edge:
    edge: Edge = request.app.state.edge
    return edge


def _routes(request: Request) -> Routes:
    """Those of the caller."""
    runtime = _edge(request).runtime
    return runtime.routes_of(runtime.keys.caller(request.scope).client)


def _recorded_models(request: Request) -> list[Json] | None:
    """Those of the cassette that is replayed; None: the config's are asked."""
    runtime = _edge(request).runtime
    caller = runtime.keys.caller(request.scope)
    selection = runtime.selection(request.scope, caller)
    if runtime.studio is None or selection is None:
        return None
    found = runtime.studio.recorded_models(selection)
    return found and [model for model in found if caller.client.may_ask(model["id"])]
