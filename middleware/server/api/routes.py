"""The GETs beside the doors: models, the last requests.

No closures: FastAPI's caches would keep what they hold for as long as the process lives.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from adapters.errors import BadRequest
from adapters.protocol import Json
from middleware.routing import Routes
from middleware.server.api.answers import (
    KeptRequests,
    ModelObject,
    ModelObjects,
    WholeRequest,
    answered,
    get,
)
from middleware.server.edge import Edge
from middleware.server.last import PATH, Access, Record, reader, summaries, told

_All = Annotated[
    str, Query(alias="all", description="`true`: those that cannot answer too, with the reason.")
]


def add_routes(api: FastAPI) -> None:
    """Register them; they find the gateway in `api.state.edge`."""
    get(api, "/v1/models", ModelObjects, 401, 403, 500)(list_models)
    get(api, "/v1/models/{model:path}", ModelObject, 401, 403, 404, 500)(describe_one_model)
    get(api, PATH, KeptRequests, 401, 403, 500)(list_the_last_requests)
    get(api, f"{PATH}/{{identity}}", WholeRequest, 401, 403, 404, 500)(show_one_request)


def _newest(one: tuple[float, Json]) -> float:
    return -one[0]


def _edge(request: Request) -> Edge:
    edge: Edge = request.app.state.edge
    return edge


async def list_models(request: Request, everything: _All = "") -> Response:
    """Those that can answer now, wildcards as their upstreams fill them."""
    recorded = _recorded_models(request)
    if recorded is not None:
        return answered({"object": "list", "data": recorded})
    runtime = _edge(request).runtime
    opens = _routes(request).opens
    found = await runtime.models.entries(opens, everything.lower() in ("1", "true", "yes"))
    return answered({"object": "list", "data": found})


async def describe_one_model(request: Request, model: str) -> Response:
    """Every name that would be answered, slashes included."""
    for found in _recorded_models(request) or ():
        if found["id"] == model:
            return answered(found)
    _routes(request).entry(model)  # or it does not exist for this client
    return answered(await _edge(request).runtime.models.entry(model))


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


async def list_the_last_requests(request: Request) -> Response:
    """Each client sees its own; an admin, and without keys this machine, sees all of them."""
    edge = _edge(request)
    owner, records, elsewhere = access(request).owner, edge.records, edge.elsewhere
    found = summaries(records, owner)
    if elsewhere is not None:
        found = sorted([*found, *await elsewhere.summaries(owner)], key=_newest)[: records.most]
    data = [told for _, told in found]
    return answered({"object": "list", "data": data, "keep_last": records.count})


async def show_one_request(request: Request, identity: str) -> Response:
    """What was asked, sent and answered, without secrets."""
    edge = _edge(request)
    runtime = edge.runtime
    address = str(request.base_url).rstrip("/")
    if (elsewhere := edge.elsewhere) is not None:
        owner = access(request).owner
        if edge.records.find(owner, identity) is None:
            found = await elsewhere.whole(owner, identity, address)
            if found is not None:
                return answered(found)
    record = kept_record(request, identity)
    return answered(told(record, runtime.scrubber, address, runtime.config.asks_keys))


def access(request: Request) -> Access:
    """What the caller may see, by its key."""
    runtime = _edge(request).runtime
    return reader(request.scope, runtime.keys, runtime.config)


def kept_record(request: Request, identity: str) -> Record:
    """One of the last requests, for who may see it."""
    record = _edge(request).records.find(access(request).owner, identity)
    if record is None:
        raise BadRequest(
            f"No request '{identity[:60]}' is kept. GET {PATH} lists those that are; only the "
            "last ones are kept ([server] keep_last), each for its own key.",
            status=404,
            code="not_kept",
        )
    return record
