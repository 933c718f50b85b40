"""The last requests, for those who may see them.

No closures: FastAPI's caches would keep what they hold for as long as the process lives.
"""

from __future__ import annotations

from fastapi import FastAPI, Request, Response

from adapters.errors import BadRequest
from adapters.protocol import Json
from middleware.server.api.answers import (
    KeptRequests,
    WholeRequest,
    answered,
    get,
)
from middleware.server.edge import Edge
from middleware.server.last import PATH, Access, Record, reader, summaries, told


def add_routes(api: FastAPI) -> None:
    """Register them; they find the gateway in `api.state.edge`."""
    get(api, PATH, KeptRequests, 401, 403, 500)(list_the_last_requests)
    get(api, f"{PATH}/{{identity}}", WholeRequest, 401, 403, 404, 500)(show_one_request)


def _newest(one: tuple[float, Json]) -> float:
    return -one[0]


def _edge(request: Request) -> Edge:
    edge: Edge = request.app.state.edge
    return edge


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
