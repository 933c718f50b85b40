"""This door as `/openapi.json` describes it."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from middleware.doors.chat.endpoint import ENDPOINT as CHAT
from middleware.doors.endpoint import Endpoint, OwnWords, described
from middleware.doors.responses.shapes import ResponsesBody


@described
class ResponseObject(TypedDict):
    """Beside these it repeats the request's own fields."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    model: str
    output: list[dict[str, Any]]
    """Messages, thoughts (`reasoning`) and calls, in the order they came."""
    error: dict[str, str] | None
    incomplete_details: dict[str, str] | None
    usage: dict[str, Any] | None
    """null where the upstream reported none."""
    x_usetool: NotRequired[OwnWords]


@described
class ResponseEvent(TypedDict):
    type: str
    sequence_number: int
    """From 0, without gaps."""
    response: NotRequired[ResponseObject]
    """Of the first two events and of the last."""
    output_index: NotRequired[int]
    item: NotRequired[dict[str, Any]]
    item_id: NotRequired[str]
    delta: NotRequired[str]


ENDPOINT = Endpoint(
    path="/v1/responses",
    summary="Answer in OpenAI's Responses API",
    description="As OpenAI's own, for every model of the list; `docs/responses.md` says what is "
    "kept and what is left out. With `stream` the answer comes as numbered events, of which "
    "`response.completed`, `response.incomplete` or `response.failed` is the last. Answers are "
    "kept for `previous_response_id` unless `store` is false.",
    body=ResponsesBody,
    example={"model": "MODEL", "input": "Hello"},
    answer=ResponseObject,
    event=ResponseEvent,
    headers=CHAT.headers,
    marks=frozenset(("input", "instructions", "previous_response_id")),
)
