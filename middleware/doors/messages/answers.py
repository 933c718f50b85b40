"""What this door answers, as types for `/openapi.json` alone."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from middleware.doors.endpoint import OwnWords, described


@described
class AnsweredMessage(TypedDict):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    """The name that was asked for; `x-upstream-model` has the upstream's."""
    content: list[dict[str, Any]]
    """Blocks of text, thoughts and calls, in the order in which they came."""
    stop_reason: str | None
    stop_sequence: str | None
    usage: dict[str, Any]


@described
class MessageEvent(TypedDict):
    """`message_start`, then `content_block_start`, `_delta` and `_stop` of each block, at the end
    `message_delta` and `message_stop`; `error` where it broke off.
    """

    type: str
    x_usetool: NotRequired[OwnWords]
    """Of `message_delta`."""
