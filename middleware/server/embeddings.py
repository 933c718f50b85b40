"""`POST /v1/embeddings`: checked like a chat, answered by the leaf of its model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

import orjson
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from starlette.types import Receive, Scope, Send
from typing_extensions import TypedDict

from adapters.errors import BadRequest
from adapters.protocol import Json, RequestContext, Usage
from adapters.shared.embeddings import EmbeddingRequest
from adapters.shared.usage import figure
from middleware.doors.endpoint import Endpoint, described
from middleware.doors.mistakes import refusal
from middleware.routing import Routes
from middleware.server.edge import AdmittedRequest, Edge

_MOST = 2048
"""Inputs of one request, as at OpenAI."""


@with_config(ConfigDict(extra="allow", strict=True))
class EmbeddingBody(TypedDict):
    model: Annotated[str, Field(min_length=1, max_length=256)]
    input: Any
    encoding_format: NotRequired[Literal["float", "base64"] | None]
    dimensions: NotRequired[Annotated[int, Field(ge=1)] | None]
    user: NotRequired[str | None]


@described
class Vector(TypedDict):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str
    """Numbers, or base64 of little-endian 32-bit floats."""


@described
class Vectors(TypedDict):
    object: Literal["list"]
    data: list[Vector]
    model: str
    usage: NotRequired[dict[str, Any]]


_ASKED: TypeAdapter[Any] = TypeAdapter(EmbeddingBody)
ENDPOINT = Endpoint(
    path="/v1/embeddings",
    summary="Make vectors of texts",
    description="As OpenAI's own API, for models of upstreams that make embeddings.",
    body=EmbeddingBody,
    example={"model": "MODEL", "input": ["Hello"]},
    answer=Vectors,
    headers={},
)
_PARAMS = ("encoding_format", "dimensions", "user")


class Wanted(NamedTuple):
    """What a client wants vectors of, in whatever protocol it says so."""

    body: bytes
    """As OpenAI's clients say it."""
    write: Callable[[Json], bytes] = orjson.dumps
    """Writes the answer, which comes as OpenAI's."""
    ready: bytes = b""
    """The answer, where there is nothing to make vectors of."""


class Embeddings:
    """The route: the same guards as a chat's, and another answer."""

    def __init__(self, edge: Edge, read: Callable[[bytes], Wanted] = Wanted) -> None:
        self._edge = edge
        self._read = read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._edge.handle(scope, receive, send, self._give)

    async def _give(self, admitted: AdmittedRequest) -> None:
        wanted = self._read(admitted.body)
        if wanted.ready:
            await admitted.answer.respond_json(wanted.ready)
            return
        vectors = await _vectors_for(replace(admitted, body=wanted.body))
        await admitted.answer.respond_json(wanted.write(vectors))


async def _vectors_for(admitted: AdmittedRequest) -> Json:
    answer = admitted.answer
    asked = parse_embedding(admitted.body, admitted.call)
    answer.visit.model = asked.model
    answer.visit.operation = "embeddings"
    routes = admitted.routes(asked.model)
    mode = admitted.mode_of(asked.model)
    if (waiting := admitted.reserve(mode, 0)) is not None:
        await waiting
    answer.watch()
    studio = admitted.runtime.studio
    if studio is None or admitted.selection is None:
        vectors = await _vectors(routes, asked, admitted.call)
    else:
        live = partial(_vectors, routes, asked)
        vectors, label = await studio.embeddings(admitted.visitor(asked.model, mode), live)
        answer.replay(label)
    answer.visit.usage = _used(vectors.get("usage"))
    return vectors


async def _vectors(routes: Routes, asked: EmbeddingRequest, call: RequestContext) -> Json:
    name, leaf = routes.guarded(asked.model)
    return {**await leaf.embed(replace(asked, model=name, call=call)), "model": asked.model}


def _used(usage: Any) -> Usage | None:
    tokens = figure(usage.get("prompt_tokens")) if isinstance(usage, dict) else None
    return None if tokens is None else Usage(tokens, 0)


def parse_embedding(body: bytes, call: RequestContext) -> EmbeddingRequest:
    try:
        found = _ASKED.validate_python(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise BadRequest(
            f"The request body is not valid JSON: {error}. Send a JSON object in UTF-8.",
            code="invalid_json",
        ) from None
    except ValidationError as error:
        raise refusal(error) from None
    if not _is_input(found["input"]):
        raise BadRequest(
            "'input' must be a string that is not empty, or an array of up to "
            f"{_MOST} of them (or of token arrays).",
            param="input",
        )
    params = {name: found[name] for name in _PARAMS if found.get(name) is not None}
    return EmbeddingRequest(found["model"], found["input"], call, params)


def _is_input(value: Any) -> bool:
    if not isinstance(value, list):
        return isinstance(value, str) and bool(value)
    if not 0 < len(value) <= _MOST:
        return _is_tokens(value)
    texts = all(isinstance(one, str) and one for one in value)
    return texts or _is_tokens(value) or all(_is_tokens(one) for one in value)


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(one) is int for one in value)
