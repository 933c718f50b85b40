"""`GET /v1/tools`: the tools the gateway runs itself."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from fastapi import FastAPI, Request, Response
from typing_extensions import TypedDict

from middleware.doors.endpoint import described
from middleware.server.api.answers import answered, get
from middleware.server.edge import Edge

PATH = "/v1/tools"


class ToolFacts(TypedDict):
    id: str
    """`TABLE.tool`, or the table's name."""
    kind: Literal["python", "http", "tavily", "mcp"]
    available: bool
    reason: NotRequired[str]
    """Why it is not available."""
    models: list[str]
    """Those that offer it."""


class ToolObject(TypedDict):
    type: Literal["function"]
    function: dict[str, Any]
    x_usetool: ToolFacts


@described
class ToolObjects(TypedDict):
    object: Literal["list"]
    data: list[ToolObject]


def add_tools_route(api: FastAPI) -> None:
    get(api, PATH, ToolObjects, 401, 403, 500)(list_server_tools)


async def list_server_tools(request: Request) -> Response:
    """The tools that models are given by the gateway, in OpenAI's form; only the caller's."""
    edge: Edge = request.app.state.edge
    runtime = edge.runtime
    client = runtime.keys.caller(request.scope).client
    shelf = runtime.shared.tools
    return answered({"object": "list", "data": shelf.listing(client.name) if shelf else []})
