"""What this door answers, as types for `/openapi.json`: the bytes are written elsewhere.

`fold.py` and `chunks.py` write them without these types, which would cost the hot path a validation
of our own words; tests hold the two together.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from middleware.doors.endpoint import OwnWords, described


@described
class UsageObject(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: NotRequired[dict[str, Any]]
    completion_tokens_details: NotRequired[dict[str, Any]]


@described
class AnsweredFunction(TypedDict):
    name: NotRequired[str]
    arguments: str
    """JSON as text; streamed in pieces."""


@described
class AnsweredCall(TypedDict):
    index: NotRequired[int]
    """Only in a stream, where it says which call a piece belongs to."""
    id: NotRequired[str]
    type: NotRequired[Literal["function", "custom"]]
    function: NotRequired[AnsweredFunction]
    custom: NotRequired[dict[str, str]]
    """Of a custom tool: `name` and `input`."""


@described
class AnswerMessage(TypedDict):
    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    reasoning_content: NotRequired[str]
    tool_calls: NotRequired[list[AnsweredCall]]
    function_call: NotRequired[AnsweredFunction]
    """Instead of `tool_calls` where the request had `functions`."""


_Reason = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]


@described
class Choice(TypedDict):
    index: int
    message: AnswerMessage
    logprobs: dict[str, Any] | None
    finish_reason: _Reason


@described
class Completion(TypedDict):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    """The name that was asked for; `x-upstream-model` has the upstream's."""
    choices: list[Choice]
    usage: NotRequired[UsageObject]
    """Left out where the upstream reported none."""
    system_fingerprint: NotRequired[str]
    service_tier: NotRequired[str]


@described
class Delta(TypedDict):
    role: NotRequired[Literal["assistant"]]
    content: NotRequired[str | None]
    refusal: NotRequired[str]
    reasoning_content: NotRequired[str]
    tool_calls: NotRequired[list[AnsweredCall]]
    function_call: NotRequired[AnsweredFunction]


@described
class ChunkChoice(TypedDict):
    index: int
    delta: Delta
    logprobs: dict[str, Any] | None
    finish_reason: _Reason | None


@described
class Chunk(TypedDict):
    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    """Empty in the last one, which has the usage, if `stream_options.include_usage` asks for it."""
    usage: NotRequired[UsageObject | None]
    system_fingerprint: NotRequired[str]
    service_tier: NotRequired[str]
    x_usetool: NotRequired[OwnWords]
    """Beside the finish reason."""
