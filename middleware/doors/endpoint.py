"""A door's address as `/openapi.json` describes it: hot doors are served in front of FastAPI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from adapters.protocol import value_class

SSE = "text/event-stream; charset=utf-8"
NDJSON = "application/x-ndjson"
described = with_config(ConfigDict(extra="allow", use_attribute_docstrings=True))
"""Said of a whole shape; it holds for those within."""


@value_class
class Endpoint:
    """One POST; the shapes are types that pydantic can describe."""

    path: str
    summary: str
    description: str
    body: Any
    answer: Any
    headers: Mapping[str, str]
    """Headers of its answers beside `x-request-id` → what they say."""
    event: Any = None
    """One event of the streamed answer, if it can be streamed."""
    stream_type: str = SSE
    """Its content-type."""
    example: Mapping[str, Any] | None = None
    """A body to try it with."""
    error: Any = None
    """What stands in place of an answer; None: `ErrorBody`."""
    reads: tuple[str, ...] = ()
    """Headers of a request that its door reads, in small letters."""
    limits: Callable[[Mapping[str, str], float], Mapping[str, str]] | None = None
    """Headers of limits as its clients call them, by the time; None: as OpenAI does."""
    marks: frozenset[str] = frozenset()
    """Members of a body or of its tools that OpenAI's chats do not have."""


class NoteObject(TypedDict):
    code: str
    """What became of the field; `x-usetool-warnings` has `code:field`."""
    field: str
    text: str


class OwnWords(TypedDict, total=False):
    warnings: list[NoteObject]
    """What could not stand in the headers any more."""
    usage: dict[str, Any]
    """What each model of a pipeline used."""
    route: list[str]
    """Who was considered, where the headers were too early for it."""
    model: str
    """Who answered, likewise."""
    steps: list[dict[str, Any]]
    """What server tools did, where the config shows that."""
    step: dict[str, Any]
    """One of them as it happens, beside an empty delta."""
    cost: float
    """USD, where the price is known."""


class ErrorObject(TypedDict):
    message: str
    """What went wrong and what to do about it; ends in the request id."""
    type: str
    param: str | None
    """The field of the request that it is about."""
    code: str | None


@described
class ErrorBody(TypedDict):
    error: ErrorObject
    x_usetool: NotRequired[OwnWords]
    """Only in the last event of a stream that failed."""
