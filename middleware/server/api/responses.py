"""The addresses beside the Responses door: answers that are kept."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response
from typing_extensions import TypedDict

from adapters.errors import BadRequest, GatewayError
from middleware.doors.door import KeptAnswer
from middleware.doors.endpoint import described
from middleware.server.api.answers import answered, delete, get, post
from middleware.server.edge import Edge
from middleware.server.kept_answers import KeptAnswers

_PATH = "/v1/responses"
_ONE = f"{_PATH}/{{response_id}}"
_PAGE, _MOST = 20, 100
_Limit = Annotated[str, Query(description=f"At most {_MOST}; {_PAGE} unless given.")]
_After = Annotated[str, Query(description="Id of the last item of the page before.")]
_Order = Annotated[str, Query(description="`desc`, the newest first, or `asc`.")]
_Stream = Annotated[str, Query(description="`true` is refused: answers are kept whole.")]


@described
class KeptResponse(TypedDict):
    """As it was answered."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["completed", "incomplete"]
    model: str
    output: list[dict[str, Any]]


@described
class InputItems(TypedDict):
    object: Literal["list"]
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


@described
class Deleted(TypedDict):
    id: str
    object: Literal["response"]
    deleted: bool


def add_response_routes(api: FastAPI) -> None:
    get(api, _PATH, KeptResponse, 400)(open_a_web_socket)
    get(api, _ONE, KeptResponse, 400, 401, 404, 500)(show_response)
    delete(api, _ONE, Deleted, 401, 404, 500)(delete_response)
    get(api, f"{_ONE}/input_items", InputItems, 400, 401, 404, 500)(list_input_items)
    post(api, f"{_PATH}/compact", Deleted, 404)(compact_a_conversation)
    post(api, f"{_ONE}/cancel", KeptResponse, 400, 401, 404, 500)(cancel_response)
    for path in ("/v1/conversations", "/v1/conversations/{rest:path}"):
        api.add_route(path, _no_conversations, ["GET", "POST", "DELETE"], include_in_schema=False)


async def open_a_web_socket(request: Request) -> Response:
    """Refused: clients then go on with POST."""
    if "sec-websocket-key" not in request.headers:
        raise BadRequest(
            f"Answers are not listed. Ask with POST {_PATH}, or get one by its id.",
            status=405,
            code="method_not_allowed",
        )
    raise BadRequest(
        f"This gateway has no web sockets. Ask with POST {_PATH} and 'stream': true.",
        status=426,
        code="unsupported_api",
    )


async def show_response(request: Request, response_id: str, stream: _Stream = "") -> Response:
    """An answer that is kept, for the key it was made for."""
    found = await _found(request, response_id)
    if stream.lower() in ("1", "true"):
        raise BadRequest(
            "Only answers made in the background can be streamed again, and there are none here. "
            "Leave 'stream' out.",
            param="stream",
        )
    return answered(found.response)


async def delete_response(request: Request, response_id: str) -> Response:
    """Answers that went on from it cannot be gone on from either."""
    await _found(request, response_id)
    await _answers(request).drop(response_id)
    return answered({"id": response_id, "object": "response", "deleted": True})


async def list_input_items(
    request: Request,
    response_id: str,
    limit: _Limit = str(_PAGE),
    after: _After = "",
    order: _Order = "desc",
) -> Response:
    """What an answer was an answer to: the items that were new in its request."""
    items = (await _found(request, response_id)).input
    if order != "asc":
        items = items[::-1]
    most = int(limit) if limit.isdecimal() and len(limit) <= len(str(_MOST)) else 0
    if not 1 <= most <= _MOST:
        raise BadRequest(f"'limit' must be a number from 1 to {_MOST}.", param="limit")
    ids = [item["id"] for item in items]
    if after and after not in ids:
        text = f"'after' is '{after[:80]}', and no item of the list has this id."
        raise BadRequest(text, param="after")
    start = ids.index(after) + 1 if after else 0
    page = items[start : start + most]
    told: InputItems = {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": start + len(page) < len(items),
    }
    return answered(told)


async def cancel_response(request: Request, response_id: str) -> Response:
    """Refused: to stop an answer, close its connection."""
    await _found(request, response_id)
    raise BadRequest(
        "Only background responses can be cancelled, and there are none here. To stop an answer, "
        "close its connection."
    )


async def compact_a_conversation() -> Response:
    """Refused: the client has to shorten it."""
    raise _missing("compact", "Shorten the input yourself, or let the client do it.")


async def _no_conversations(request: Request) -> Response:
    raise _missing("keep conversations", "Send 'previous_response_id', or all items in 'input'.")


def _missing(what: str, instead: str) -> GatewayError:
    text = f"This gateway does not {what}. {instead}"
    return BadRequest(text, status=404, code="unsupported_api")


def _answers(request: Request) -> KeptAnswers:
    edge: Edge = request.app.state.edge
    runtime = edge.runtime
    caller = runtime.keys.caller(request.scope)
    return KeptAnswers.of(runtime, caller, runtime.selection(request.scope, caller))


async def _found(request: Request, identity: str) -> KeptAnswer:
    door = request.app.state.edge.doors.keeping[_PATH]
    found = await _answers(request).find(door, (identity,))
    if identity in found:
        return found[identity]
    raise BadRequest(
        f"Response with id '{identity[:80]}' not found. Answers are kept for a time, for the key "
        "they were made for, unless they were asked with 'store': false.",
        status=404,
        code="response_not_found",
        param="id",
    )
