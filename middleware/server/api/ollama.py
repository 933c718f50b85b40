"""The addresses of Ollama's API beside its chats: what there is, and what is not kept here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import orjson
from fastapi import FastAPI, Request, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from adapters.errors import BadRequest, Unauthorized
from adapters.protocol import Json
from adapters.receipts import Notes
from middleware.doors.body import read_object
from middleware.doors.endpoint import NDJSON, Endpoint, described
from middleware.doors.ollama.forms import bare
from middleware.doors.ollama.lists import shown, tag
from middleware.doors.ollama.vectors import (
    EMBED,
    OLD_EMBED,
    as_old_ollama,
    as_ollama,
    as_openai,
    embedding_model,
)
from middleware.server.api.answers import answered, get, post
from middleware.server.api.models import model_of, models_of
from middleware.server.api.routes import access
from middleware.server.edge import Edge, request_id
from middleware.server.embeddings import Embeddings, Wanted
from middleware.server.transport.intake import read_body

_FAILURES = (400, 401, 403, 404, 413, 415, 431, 500)
_KEPT_ELSEWHERE = (
    "this gateway does not keep models: they are those of its upstreams, and its config says which."
)
_NOT_KEPT = ("copy", "create", "push", "delete", "blobs/{digest:path}")
_NOT_HERE = ("signout", "status", "experimental/{path:path}")
_EVERY = ("GET", "POST", "PUT", "DELETE")


@described
class OllamaVersion(TypedDict):
    version: str


@described
class TaggedModels(TypedDict):
    models: list[dict[str, Any]]


@described
class ShownModel(TypedDict):
    details: dict[str, Any]
    model_info: dict[str, Any]
    capabilities: list[str]


@described
class PullStatus(TypedDict):
    status: Literal["pulling manifest", "success"]


def add_ollama_routes(api: FastAPI, edge: Edge) -> Sequence[Endpoint]:
    """Register them; return those that are described as doors are."""
    get(api, "/api/version", OllamaVersion, 401, 403, 500)(tell_version)
    get(api, "/api/tags", TaggedModels, 401, 403, 500)(list_tags)
    get(api, "/api/ps", TaggedModels, 401, 403, 500)(list_loaded)
    post(api, "/api/show", ShownModel, *_FAILURES)(show_model)
    post(api, "/api/pull", PullStatus, *_FAILURES)(pull_model)
    for endpoint, read in ((EMBED, _wanted), (OLD_EMBED, _wanted_of_old)):
        route = Route(endpoint.path, Embeddings(edge, read), methods=["POST"])
        api.router.routes.append(route)
    for names, refuse in ((_NOT_KEPT, _not_kept), (_NOT_HERE, _not_here), (("me",), _signed_out)):
        for name in names:
            api.add_route(f"/api/{name}", refuse, methods=[*_EVERY], include_in_schema=False)
    return EMBED, OLD_EMBED


async def tell_version(request: Request) -> Response:
    """Which Ollama it speaks as: clients ask whether it is new enough for them."""
    access(request)
    edge: Edge = request.app.state.edge
    return answered({"version": edge.runtime.server.ollama_version})


async def list_tags(request: Request) -> Response:
    """The models that can answer now."""
    return answered({"models": [tag(model) for model in await models_of(request)]})


async def list_loaded(request: Request) -> Response:
    """None: what is loaded is the upstreams' own affair."""
    access(request)
    return answered({"models": []})


async def show_model(request: Request) -> Response:
    """What a model can do; the body names it: `{"model": NAME}`."""
    _, model = await _named_model(request)
    return answered(shown(model))


async def pull_model(request: Request) -> Response:
    """Whether there is such a model, as `/api/show`: nothing is fetched."""
    data, _ = await _named_model(request)
    if data.get("stream") is False:
        return answered({"status": "success"})
    lines = [orjson.dumps({"status": said}) + b"\n" for said in ("pulling manifest", "success")]
    return Response(b"".join(lines), 200, {"x-request-id": request_id()}, NDJSON)


async def _named_model(request: Request) -> tuple[Json, Json]:
    """The body, and the model it names."""
    edge: Edge = request.app.state.edge
    access(request)
    body = await read_body(request.scope, request.receive, edge.runtime.server.max_body)
    data = read_object(body, Notes())
    name = data.get("model") or data.get("name")
    if not name or not isinstance(name, str):
        raise BadRequest("model is required", param="model")
    return data, await model_of(request, bare(name))


def _wanted(body: bytes) -> Wanted:
    data, name = embedding_model(body)
    texts = data.get("input")
    if texts in ("", [], None):
        return Wanted(b"", ready=as_ollama(name, {"data": ()}))
    return Wanted(as_openai(data, texts), partial(as_ollama, name))


def _wanted_of_old(body: bytes) -> Wanted:
    data, _ = embedding_model(body)
    if not (text := data.get("prompt")):
        return Wanted(b"", ready=as_old_ollama({"data": ()}))
    return Wanted(as_openai(data, text), as_old_ollama)


async def _not_kept(request: Request) -> Response:
    access(request)
    raise BadRequest(_KEPT_ELSEWHERE, status=501, code="not_supported")


async def _not_here(request: Request) -> Response:
    access(request)
    raise BadRequest("not found", status=404, code="unknown_url")


async def _signed_out(_: Request) -> Response:
    raise Unauthorized("Nobody signs in to this gateway.")
