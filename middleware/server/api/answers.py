"""The shapes of answers beside the doors. They describe; what is sent is written where it is made,
so that a list of a thousand models is not checked against our own types at every question.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NotRequired

import orjson
from fastapi import FastAPI, Response
from typing_extensions import TypedDict

from adapters.protocol import Json
from middleware.doors import DOORS
from middleware.doors.endpoint import NoteObject, described
from middleware.server.edge import request_id

SCHEMAS = "#/components/schemas/{model}"
ERROR = SCHEMAS.format(model="ErrorBody")
Answer = Callable[..., Awaitable[Response]]
KEYED: Mapping[str, Any] = {"security": [{}, {"key": []}]}
"""A key of the gateway, where it asks for one."""
_REQUEST_ID = "Names this request: `usetool last ID` shows it."
ERRORS: Mapping[int, str] = {
    400: "The request is wrong, or asks for what the model cannot do; `param` names the field.",
    401: "The gateway asks for a key, and this is none of its own.",
    403: "It is for admins; or no key is asked, and `Host` or `Origin` is not of this machine.",
    404: "There is no model, or no kept request, of this name.",
    409: "The upstream says that this conflicts with something.",
    413: "The request is too large, for the gateway or for the upstream.",
    415: "The body is compressed.",
    422: "No turn of the cassette answers this, or there is no such cassette.",
    429: "A limit of the client, or of the upstream, is reached.",
    431: "The request's headers are too many or too large.",
    500: "The gateway made a mistake, or the upstream says that it did.",
    502: "The upstream failed, or refused the gateway's key.",
    503: "The gateway or the upstream is overloaded, or the model is not available.",
    504: "The upstream did not answer in time.",
}
_RETRY: Mapping[str, str] = {
    "retry-after": "Seconds to wait.",
    "x-should-retry": "`false` where asking again does not help.",
}


class ModelFacts(TypedDict):
    available: bool
    upstream: str
    reason: NotRequired[str]
    """Why it is not available."""
    abilities: NotRequired[dict[str, Any]]
    model_info: NotRequired[dict[str, Any]]
    """AutoGen's, ready to paste."""


@described
class ModelObject(TypedDict):
    id: str
    """The name to ask for."""
    object: Literal["model"]
    type: Literal["model"]
    display_name: str
    created: int
    created_at: str
    owned_by: str
    context_length: NotRequired[int]
    max_model_len: NotRequired[int]
    max_output_tokens: NotRequired[int]
    x_usetool: ModelFacts


@described
class ModelObjects(TypedDict):
    object: Literal["list"]
    data: list[ModelObject]
    has_more: bool
    """More than `limit` allowed."""
    first_id: str | None
    last_id: str | None


class KeptRequest(TypedDict):
    id: str
    time: str
    model: str
    method: str
    path: str
    status: int | None
    """Null while it is being answered."""
    seconds: float | None
    stream: bool
    upstreams: list[str]
    finish: NotRequired[str]
    error: NotRequired[str | None]


@described
class KeptRequests(TypedDict):
    object: Literal["list"]
    data: list[KeptRequest]
    """The newest first."""
    keep_last: int


@described
class WholeRequest(KeptRequest):
    message: NotRequired[str]
    first_event: NotRequired[float]
    receipt: list[NoteObject]
    body: str
    curl: str
    calls: list[dict[str, Any]]
    """What each upstream was sent, and said."""


def get(api: FastAPI, path: str, shape: Any, *failures: int) -> Callable[[Answer], Answer]:
    """Register a function for GET, and for HEAD as Starlette does; its docstring describes it."""
    return _route(api, path, ["GET", "HEAD"], shape, failures)


def post(api: FastAPI, path: str, shape: Any, *failures: int) -> Callable[[Answer], Answer]:
    return _route(api, path, ["POST"], shape, failures)


def delete(api: FastAPI, path: str, shape: Any, *failures: int) -> Callable[[Answer], Answer]:
    return _route(api, path, ["DELETE"], shape, failures)


def _route(
    api: FastAPI, path: str, methods: list[str], shape: Any, failures: Sequence[int]
) -> Callable[[Answer], Answer]:
    return api.api_route(
        path,
        methods=methods,
        response_model=shape,
        response_description="The answer.",
        responses={200: {"headers": headers({})}, **errors(failures, _errors_at(path))},
        openapi_extra={**KEYED} if 401 in failures else None,
    )


def _errors_at(path: str) -> Json | None:
    """The shape of errors in the words of the protocol an address belongs to."""
    door = DOORS.owner(path)
    shape = door and door.endpoint.error
    return {"$ref": SCHEMAS.format(model=shape.__name__)} if shape else None


def errors(statuses: Iterable[int], schema: Json | None = None) -> dict[int | str, Json]:
    """Responses of an endpoint that can fail so. By reference: FastAPI builds a validator for
    each shape it is given, at every start.
    """
    content = {"application/json": {"schema": schema or {"$ref": ERROR}}}
    return {
        status: {
            "description": ERRORS[status],
            "headers": headers(_RETRY if status == 409 or status >= 429 else {}),
            "content": content,
        }
        for status in statuses
    }


def headers(told: Mapping[str, str]) -> Json:
    """Headers of a response as OpenAPI describes them."""
    named = {"x-request-id": _REQUEST_ID, **told}
    return {
        name: {"description": text, "schema": {"type": "string"}} for name, text in named.items()
    }


def answered(value: Any) -> Response:
    sent = {"x-request-id": request_id()}
    return Response(orjson.dumps(value), 200, sent, "application/json")
