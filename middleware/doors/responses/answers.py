"""What this door answers, as types for `/openapi.json` alone."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from middleware.doors.endpoint import OwnWords, described


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
