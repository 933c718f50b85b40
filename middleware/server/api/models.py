"""`GET /v1/models`, and one of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from middleware.server.api.answers import ModelObject, ModelObjects, answered, get
from middleware.server.edge import Edge

_All = Annotated[
    str, Query(alias="all", description="`true`: those that cannot answer too, with the reason.")
]


def add_models(api: FastAPI, edge: Edge) -> None:
    @get(api, "/v1/models", ModelObjects, 401, 403, 500)
    async def list_models(request: Request, everything: _All = "") -> Response:
        """Those that can answer now, wildcards as their upstreams fill them."""
        edge.runtime.keys.client(request.scope)
        found = await edge.runtime.models.entries(everything.lower() in ("1", "true", "yes"))
        return answered({"object": "list", "data": found})

    @get(api, "/v1/models/{model:path}", ModelObject, 401, 403, 404, 500)
    async def describe_one_model(request: Request, model: str) -> Response:
        """Every name that would be answered, slashes included."""
        edge.runtime.keys.client(request.scope)
        return answered(await edge.runtime.models.entry(model))
