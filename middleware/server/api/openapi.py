"""`/openapi.json`: what FastAPI knows of its routes, and the doors in front of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import TypeAdapter

from adapters.protocol import Json
from middleware.doors.endpoint import NDJSON, Endpoint, ErrorBody
from middleware.server.api.answers import ERRORS, KEYED, SCHEMAS, errors, headers

_ABOUT = (
    "Every model as OpenAI's chat completions with tools. Errors have OpenAI's shape: "
    "`message` says what to do, `code` is for programs."
)
_KEY: Mapping[str, str] = {
    "type": "http",
    "scheme": "bearer",
    "description": "One of `[server] keys`; `x-api-key` and `api-key` will do too. Without keys in "
    "the config any text, or nothing.",
}


def describe(api: FastAPI, doors: Sequence[Endpoint]) -> Json:
    document = get_openapi(
        title=api.title, version=api.version, description=_ABOUT, routes=list(_routes(api))
    )
    for described in document["paths"].values():
        for operation in described.values():
            # FastAPI's own never happens, as all parameters are texts.
            if "HTTPValidationError" in str(operation["responses"].get("422")):
                del operation["responses"]["422"]
    schemas, definitions = _schemas(doors)
    hot = {door.path: {"post": _operation(door, schemas)} for door in doors}
    cold = document["paths"]
    document["paths"] = {**hot, **{path: hot.get(path, {}) | said for path, said in cold.items()}}
    definitions |= document["components"]["schemas"]
    unused = ("HTTPValidationError", "ValidationError")
    document["components"] = {
        "schemas": {name: definitions[name] for name in sorted(definitions) if name not in unused},
        "securitySchemes": {"key": _KEY},
    }
    return document


def _routes(api: FastAPI) -> Iterator[APIRoute]:
    """HEAD left out, which FastAPI would describe as an endpoint of its own."""
    for route in api.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            described = copy(route)
            described.methods = set(route.methods or ()) - {"HEAD"}
            described.summary = route.name.replace("_", " ").capitalize()
            yield described


def _schemas(doors: Sequence[Endpoint]) -> tuple[dict[tuple[str, str], Json], Json]:
    """The schema of each shape by path and use, and the definitions they refer to."""
    shapes = {
        (door.path, use): shape
        for door in doors
        for use in ("body", "answer", "event", "error")
        if (shape := getattr(door, use)) is not None
    }
    shapes["", "error"] = ErrorBody  # of every endpoint
    found, definitions = TypeAdapter.json_schemas(
        [(key, "validation", TypeAdapter(shape)) for key, shape in shapes.items()],
        ref_template=SCHEMAS,
    )
    return {key: schema for (key, _), schema in found.items()}, definitions["$defs"]


def _operation(door: Endpoint, schemas: dict[tuple[str, str], Json]) -> Json:
    content = {"application/json": {"schema": schemas[door.path, "answer"]}}
    if door.event is not None:
        event = {
            "contentMediaType": "application/json",
            "contentSchema": schemas[door.path, "event"],
        }
        data = {"type": "string", "anyOf": [event, {"const": "[DONE]"}]}
        stream = {"type": "object", "required": ["data"], "properties": {"data": data}}
        if door.stream_type == NDJSON:
            content[NDJSON] = {"itemSchema": schemas[door.path, "event"]}
        else:
            content["text/event-stream"] = {"itemSchema": stream}
    body: Json = {"schema": schemas[door.path, "body"]}
    if door.example is not None:
        body["example"] = door.example
    good = {"description": "The answer.", "headers": headers(door.headers), "content": content}
    failures = errors(ERRORS, schemas.get((door.path, "error")))
    return {
        **KEYED,
        "summary": door.summary,
        "description": door.description,
        "operationId": door.path.strip("/").replace("/", "_"),
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {"200": good, **{str(one): told for one, told in failures.items()}},
    }
