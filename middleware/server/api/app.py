"""The FastAPI app: models, embeddings, kept requests, health, and the pages that describe them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route

from adapters.errors import GatewayError
from middleware import __version__
from middleware.doors.endpoint import Endpoint
from middleware.server.api.cassettes import add_cassette_routes
from middleware.server.api.health import add_health_routes
from middleware.server.api.messages import add_message_routes
from middleware.server.api.models import add_model_routes
from middleware.server.api.ollama import add_ollama_routes
from middleware.server.api.pages import add_pages
from middleware.server.api.responses import add_response_routes
from middleware.server.api.routes import add_routes
from middleware.server.api.tools import add_tools_route
from middleware.server.api.usage import add_usage_route
from middleware.server.edge import Edge, our_mistake
from middleware.server.embeddings import ENDPOINT as EMBEDDINGS
from middleware.server.embeddings import Embeddings
from middleware.server.signposts import unknown_url, wrong_method
from middleware.telemetry.vitals import Vitals

Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]


def build_api(edge: Edge, vitals: Vitals, doors: Sequence[Endpoint]) -> FastAPI:
    """Build the app; `doors` are served before it and only described here.

    FastAPI's own pages load their scripts from another host, so they are off.
    """
    api = FastAPI(
        title="Usetool",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,
        exception_handlers=_failures(edge),
    )
    api.state.edge, api.state.vitals = edge, vitals
    add_model_routes(api)
    add_routes(api)
    add_health_routes(api)
    add_cassette_routes(api)
    add_usage_route(api)
    add_tools_route(api)
    add_response_routes(api)
    add_message_routes(api)
    api.router.routes.append(Route(EMBEDDINGS.path, Embeddings(edge), methods=["POST"]))
    vectors = add_ollama_routes(api, edge)
    add_pages(api, edge, [*doors, EMBEDDINGS, *vectors])
    return api


def _failures(edge: Edge) -> dict[int | type[Exception], Handler]:
    """What becomes of what goes wrong beside the doors."""

    async def gateway_error(request: Request, error: GatewayError) -> Response:
        return edge.refused(request.scope, error)

    async def http_exception(request: Request, error: HTTPException) -> Response:
        method, path = request.method, request.scope["path"]
        if error.status_code == 405 and method == "OPTIONS":
            return Response(status_code=204, headers=error.headers)
        if error.status_code == 405 and path != "/":
            allowed = (error.headers or {}).get("Allow", "another")
            wrong = wrong_method(method, path, allowed)
            return edge.refused(request.scope, wrong, error.headers)
        return edge.refused(request.scope, unknown_url(method, path))

    async def unforeseen(request: Request, _: Exception) -> Response:
        return edge.refused(request.scope, our_mistake())

    return {GatewayError: gateway_error, HTTPException: http_exception, Exception: unforeseen}
