"""The addresses beside the Messages door: tokens counted before they are sent."""

from __future__ import annotations

from dataclasses import replace

import orjson
from fastapi import FastAPI, Request, Response
from typing_extensions import TypedDict

from adapters.errors import BadRequest
from adapters.protocol import ChatRequest, RequestContext
from adapters.receipts import Note
from adapters.shared.carriers import fit
from middleware.doors.endpoint import described
from middleware.doors.messages import MESSAGES_DOOR, estimate, parse_counted
from middleware.doors.x_usetool import warnings_header
from middleware.server.api.answers import post
from middleware.server.edge import Edge, heard, request_id
from middleware.server.transport.intake import Caller, read_body

PATH = "/v1/messages/count_tokens"
_ESTIMATED = Note("usage_estimated", "", "no upstream has counted")


@described
class CountedTokens(TypedDict):
    input_tokens: int


def add_message_routes(api: FastAPI) -> None:
    post(api, PATH, CountedTokens, 400, 401, 403, 404, 413, 500)(count_tokens)
    for path in ("/v1/messages/batches", "/v1/messages/batches/{rest:path}", "/v1/complete"):
        api.add_route(path, _not_here, ["GET", "POST", "DELETE"], include_in_schema=False)


async def count_tokens(request: Request) -> Response:
    """How long a conversation is: counted by an upstream of Anthropic's language, else estimated
    and rather too high. Nobody is asked to answer it.
    """
    edge: Edge = request.app.state.edge
    runtime, scope, identity = edge.runtime, request.scope, request_id()
    caller = runtime.keys.caller(scope)
    body = await read_body(scope, request.receive, runtime.server.max_body)
    headers = heard(scope, MESSAGES_DOOR.endpoint.reads)
    call = RequestContext(
        id=identity,
        owner=caller.client.owner,
        key=caller.key,
        secret=runtime.shared.secret,
        headers=headers,
    )
    asked = parse_counted(body, call).request
    found = await _counted(edge, request, caller, asked)
    told = {"x-request-id": identity, **MESSAGES_DOOR.headers(identity)}
    if found is None:
        told["x-usetool-warnings"] = warnings_header((_ESTIMATED,))
    tokens = estimate(asked) if found is None else found
    return Response(orjson.dumps({"input_tokens": tokens}), 200, told, "application/json")


async def _counted(edge: Edge, request: Request, caller: Caller, asked: ChatRequest) -> int | None:
    runtime = edge.runtime
    routes = runtime.routes_of(caller.client)
    route = routes.find(asked.model)
    selection = runtime.selection(request.scope, caller)
    played = runtime.is_played(selection, asked.model)
    if route.leaf is None or asked.native is None or played:
        return None
    entry = routes.entry(asked.model)
    if not entry.available:
        return None
    keys = runtime.routes.rings[entry.upstream].secrets
    call = replace(asked.call, key=next(iter(keys.values()), asked.call.key))
    # Whoever can count it has its client's own words.
    fitting, _ = fit(asked, asked.native.language, "")
    return await route.leaf.count_tokens(replace(fitting, model=route.name, call=call))


async def _not_here(request: Request) -> Response:
    raise BadRequest(
        f"There is nothing at {request.url.path[:100]}: this gateway answers messages one by one, "
        "and keeps no files. Send each to POST /v1/messages.",
        status=404,
        code="unknown_url",
    )
