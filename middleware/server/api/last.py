"""`GET /v1/x_usetool/last`: the last requests, for `usetool last` and for whoever asks."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response

from adapters.errors import BadRequest
from middleware.server.api.answers import KeptRequests, WholeRequest, answered, get
from middleware.server.edge import Edge
from middleware.server.last import PATH, reader, summary, told


def add_last(api: FastAPI, edge: Edge) -> None:
    @get(api, PATH, KeptRequests, 401, 403, 500)
    async def list_the_last_requests(request: Request) -> Response:
        """Each key sees its own; without keys this machine sees all of them."""
        client = reader(request.scope, edge.runtime.keys, edge.runtime.server)
        found = [summary(one) for one in edge.records.of(client)]
        return answered({"object": "list", "data": found, "keep_last": edge.records.count})

    @get(api, f"{PATH}/{{identity}}", WholeRequest, 401, 403, 404, 500)
    async def show_one_request(request: Request, identity: str) -> Response:
        """What was asked, sent and answered, without secrets."""
        runtime = edge.runtime
        client = reader(request.scope, runtime.keys, runtime.server)
        record = edge.records.find(client, identity)
        if record is None:
            raise BadRequest(
                f"No request '{identity[:60]}' is kept. GET {PATH} lists those that are; only the "
                "last ones are kept ([server] keep_last), each for its own key.",
                status=404,
                code="not_kept",
            )
        address = str(request.base_url).rstrip("/")
        return answered(told(record, runtime.scrubber, address, bool(runtime.server.keys)))
