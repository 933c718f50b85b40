"""What this door answers, as types for `/openapi.json` alone."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from middleware.doors.endpoint import OwnWords, described


class ItemObject(TypedDict):
    """A message, a thought or a call."""

    type: Literal["message", "reasoning", "function_call", "custom_tool_call"]
    id: str
    status: Literal["in_progress", "completed", "incomplete"]
    role: NotRequired[Literal["assistant"]]
    content: NotRequired[list[dict[str, Any]]]
    summary: NotRequired[list[dict[str, str]]]
    """What was thought."""
    encrypted_content: NotRequired[str]
    """The thought as its upstream wants it back; sealed by this gateway."""
    call_id: NotRequired[str]
    name: NotRequired[str]
    namespace: NotRequired[str]
    arguments: NotRequired[str]
    input: NotRequired[str]


@described
class ResponseObject(TypedDict):
    """Beside these it repeats the request's own fields."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    model: str
    output: list[ItemObject]
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
    item: NotRequired[ItemObject]
    item_id: NotRequired[str]
    delta: NotRequired[str]
